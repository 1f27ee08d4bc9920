/**
 * Reads a JSON document and hands over its top-level list `name` one item after the other, so that no more than one of
 * them is in memory. `begin` is called for each list of this name, and returns who takes its items: JSON.parse would
 * take the last such list. Returns the rest of the document, with an empty list instead. Throws what JSON.parse throws.
 */
export function readInParts(
  bytes: Buffer,
  name: string,
  begin: () => (item: unknown, text: string) => void,
): { rest: unknown; text: string } {
  const kept: string[] = []
  /** Who takes the items, while `at` is inside of the list. */
  let take: ReturnType<typeof begin> | undefined
  let depth = 0
  /** Inside of the list: where the current item begins. Outside: where the text begins that belongs to the rest. */
  let from = 0
  /** The last text in the top level, and whether a colon follows it. */
  let key: { from: number; to: number; isOver: boolean } | undefined
  let count = 0
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case codes.quote: {
        const to = endOfText(bytes, at)
        if (depth === 1) key = { from: at, to, isOver: false }
        at = to - 1
        break
      }
      case codes.colon:
        if (depth === 1 && key) key.isOver = true
        break
      case codes.openBracket:
        if (depth++ === 1 && key?.isOver && JSON.parse(textOf(key.from, key.to)) === name) {
          kept.push(textOf(from, at + 1))
          take = begin()
          count = 0
          from = at + 1
        }
        break
      case codes.openBrace:
        depth++
        break
      case codes.closeBracket:
      case codes.closeBrace:
        if (--depth !== 1 || !take) break
        takeItem(at, take, true)
        take = undefined
        from = at
        break
      case codes.comma:
        if (depth === 1) key = undefined
        if (depth !== 2 || !take) break
        takeItem(at, take, false)
        from = at + 1
        break
    }
  }
  const text = [...kept, textOf(from, bytes.length)].join('')
  return { rest: JSON.parse(text), text }

  function takeItem(to: number, taker: NonNullable<typeof take>, isLast: boolean): void {
    const text = textOf(from, to)
    // An empty list has no item. JSON.parse refuses a comma without an item.
    if (isLast && count === 0 && /^[ \n\t\r]*$/.test(text)) return
    taker(JSON.parse(text), text)
    count++
  }

  function textOf(start: number, end: number): string {
    return bytes.toString('utf8', start, end)
  }
}

const codes = {
  quote: '"'.charCodeAt(0),
  backslash: '\\'.charCodeAt(0),
  colon: ':'.charCodeAt(0),
  comma: ','.charCodeAt(0),
  openBracket: '['.charCodeAt(0),
  closeBracket: ']'.charCodeAt(0),
  openBrace: '{'.charCodeAt(0),
  closeBrace: '}'.charCodeAt(0),
} as const

/** The index after the text that begins at `start`. */
function endOfText(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    if (bytes[at] === codes.backslash) at++
    else if (bytes[at] === codes.quote) return at + 1
  }
  return bytes.length
}
