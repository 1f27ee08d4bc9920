/** Every control, format, line-separating and private character, and every lone surrogate. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu

/**
 * Makes control, formatting and other invisible characters visible. A stranger's client id must not move the cursor of
 * an operator.
 */
export function visible(text: string): string {
  return text.replace(unprintable, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code <= 0xff ? `\\x${hex(code, 2)}` : `\\u{${hex(code, 4)}}`
  })
}

/**
 * Makes JSON text safe for a terminal, without changing its value. Escapes what a terminal would act upon, such as C1
 * and direction marks. Keeps line ends between values.
 */
export function visibleJson(json: string): string {
  if (!beyondAscii.test(json)) return json
  return json.replace(unprintable, (character) =>
    character === '\n' ? character : [...units(character)].map((unit) => `\\u${hex(unit, 4)}`).join(''),
  )
}

/** Prepares a line of JSON for a log printer. The printer then shows each text as `visible` would return it. */
export function legibleJson(line: string): string {
  return visibleJson(line).replace(escapes, (escaped) => {
    if (escaped === '\\n' || escaped === '\\t') return escaped // keeps line ends and tabs of stack traces
    const text: string = JSON.parse(`"${escaped}"`)
    return JSON.stringify(visible(text)).slice(1, -1)
  })
}

const beyondAscii = /[^\n -~]/
/** The escape sequences of JSON. A surrogate pair counts as one sequence. */
const escapes = /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\./g

function* units(text: string): Iterable<number> {
  for (let index = 0; index < text.length; index++) yield text.charCodeAt(index)
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0')
}
