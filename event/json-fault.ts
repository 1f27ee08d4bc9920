/** Says where a text stops being JSON; undefined if it is JSON. Never quotes the text: any word may be a password. */
export function jsonFault(text: string): string | undefined {
  const fault = firstFault(text)
  if (fault === undefined) return undefined
  return `${lineAndColumn(text, fault)}: ${fault === text.length ? 'the text ends before its JSON does' : 'this is not JSON'}`
}

/** Matches white space and one JSON token (RFC 8259), or an empty token. */
const token =
  /[ \t\r\n]*([{}[\],:]|"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|)/y

/** Where the text stops being JSON, or undefined. The errors of `JSON.parse` do not always name the place. */
function firstFault(text: string): number | undefined {
  const open: string[] = []
  let expected: 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'next' = 'value'
  for (let index = 0; ; index = token.lastIndex) {
    token.lastIndex = index
    const [all = '', found = ''] = token.exec(text) ?? []
    const at = index + all.length - found.length
    const inside = open.at(-1)
    if (expected === 'next' && inside === undefined) return at === text.length ? undefined : at
    const isEnd = found === (inside === '{' ? '}' : ']') && inside !== undefined
    if (isEnd && (expected === 'next' || expected.endsWith('or end'))) {
      open.pop()
      expected = 'next'
    } else if (expected === 'next') {
      if (found !== ',') return at
      expected = inside === '{' ? 'key' : 'value'
    } else if (expected === 'colon') {
      if (found !== ':') return at
      expected = 'value'
    } else if (expected.startsWith('key')) {
      if (!found.startsWith('"')) return at
      expected = 'colon'
    } else if (found === '{' || found === '[') {
      open.push(found)
      expected = found === '{' ? 'key or end' : 'value or end'
    } else {
      if (found === '' || /^[}\],:]/.test(found)) return at
      expected = 'next'
    }
  }
}

function lineAndColumn(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n')
  return `line ${lines.length}, column ${[...(lines.at(-1) ?? '')].length + 1}`
}
