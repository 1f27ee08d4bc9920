import { type ErrorItem, errorItem, pathOf, quote } from './error.ts'

/** Deepest nesting of objects and arrays; the event itself is level 1. */
export const maxNesting = 64

/** More items help nobody, and an answer must not be larger than the question. */
const maxErrors = 100

/**
 * Reads a payload as one JSON object, stricter than JSON.parse: what two readers could understand
 * differently is refused (duplicate keys, numbers beyond double precision, `__proto__`), and so is what
 * could exhaust a reader further down (nesting).
 */
export function parseJson(payload: Uint8Array): { value: unknown } | { errors: ErrorItem[] } {
  let text: string
  try {
    text = utf8.decode(payload)
  } catch {
    return refused('it is not valid UTF-8')
  }
  // RFC 8259 §8.1: a byte order mark must not be added.
  if (text.startsWith('\uFEFF')) return refused('it starts with a byte order mark, expected {')

  // Before JSON.parse, which takes its time over a hundred thousand open brackets.
  const { errors, tooDeep } = scan(text)
  if (tooDeep) return { errors }

  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return refused(error instanceof Error ? error.message : 'it does not parse')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refused(`it is ${quote(value)}, expected an object`)
  }
  return errors.length > 0 ? { errors } : { value }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function refused(detail: string): { errors: ErrorItem[] } {
  return { errors: [errorItem('payload.json', '.', detail)] }
}

/** An object or array that is open at the current place of the scan. */
interface Level {
  /** Keys of an object so far, and whether the repetition of one was already reported. */
  keys: Map<string, boolean> | undefined
  /** Key or index of the current value. */
  at: string | number
}

/**
 * Looks through JSON text for what JSON.parse hides. What it finds in text that is no JSON is of no account.
 * One pass with its own stack: linear, whatever the input, and never deeper than `maxNesting`.
 */
function scan(text: string): { errors: ErrorItem[]; tooDeep: boolean } {
  const errors: ErrorItem[] = []
  const levels: Level[] = []
  let index = 0
  while (index < text.length && errors.length < maxErrors) {
    const level = levels.at(-1)
    switch (text[index]) {
      case '{':
      case '[':
        if (levels.length >= maxNesting) {
          report(`nested deeper than ${maxNesting} levels`)
          return { errors, tooDeep: true }
        }
        levels.push(text[index] === '{' ? { keys: new Map(), at: '' } : { keys: undefined, at: 0 })
        index++
        break
      case '}':
      case ']':
        levels.pop()
        index++
        break
      case ',':
        if (typeof level?.at === 'number') level.at++
        index++
        break
      case '"': {
        const end = endOfString(text, index)
        // A string is a key exactly when a colon follows.
        if (level?.keys !== undefined && text[skipSpace(text, end)] === ':') {
          level.at = spelledKey(text.slice(index, end))
          checkKey(level.at, level.keys)
        }
        index = end
        break
      }
      default:
        number.lastIndex = index
        if (number.test(text)) {
          checkNumber(text.slice(index, number.lastIndex))
          index = number.lastIndex
        } else {
          index++ // white space, a colon, or a letter of true, false, null
        }
    }
  }
  return { errors, tooDeep: false }

  function checkKey(key: string, keys: Map<string, boolean>): void {
    if (key === '__proto__') report('the key __proto__ is not allowed')
    const reported = keys.get(key)
    if (reported === false) report(`the key ${quote(key)} occurs twice`)
    keys.set(key, reported !== undefined)
  }

  function checkNumber(literal: string): void {
    const value = Number(literal)
    // Beyond 2^53-1 every double is an integer; which one was meant is lost (service.md §8).
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
      report(`the number ${quote(literal)} is out of range, expected at most ±${Number.MAX_SAFE_INTEGER}`)
    }
  }

  function report(detail: string): void {
    if (errors.length < maxErrors) {
      errors.push(errorItem('payload.json', pathOf(...levels.map((level) => level.at)), detail))
    }
  }
}

const number = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** The place behind the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  let index = start + 1
  while (index < text.length && text[index] !== '"') index += text[index] === '\\' ? 2 : 1
  return index + 1
}

/** The key that a string literal spells: `"\u0061"` and `"a"` are the same key. */
function spelledKey(literal: string): string {
  if (!literal.includes('\\')) return literal.slice(1, -1)
  try {
    return JSON.parse(literal)
  } catch {
    return literal // JSON.parse of the whole will say why
  }
}

function skipSpace(text: string, start: number): number {
  let index = start
  while (text[index] === ' ' || text[index] === '\n' || text[index] === '\t' || text[index] === '\r') index++
  return index
}
