/**
 * The known name nearest to a mistyped one, by words or by letters. Ignores case, `_` and `-`. Undefined if no name is
 * near.
 */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const words = wordsOf(name)
  const asked = words.join('')
  const ranked = known
    .map((one) => ({
      one,
      hasWords:
        words.length > 0 && words.every((word) => wordsOf(one).some((other) => other.startsWith(word))),
      distance: distance(asked, wordsOf(one).join('')),
    }))
    .filter((rank) => rank.hasWords || rank.distance <= asked.length / 3)
  ranked.sort((a, b) => Number(b.hasWords) - Number(a.hasWords) || a.distance - b.distance)
  return ranked[0]?.one
}

/**
 * The words of a name in lower case: `HUB_MQTT_PORT` gives `mqtt`, `port`. Reads 64 letters, because no setting is
 * longer.
 */
function wordsOf(name: string): string[] {
  const short = name.slice(0, 64).replace(/^HUB_/i, '')
  const words = short.replace(/([a-z])([A-Z])/g, '$1_$2').split(/[_-]/)
  return words.filter(Boolean).map((word) => word.toLowerCase())
}

/** The Levenshtein distance: how many letters to add, remove or replace. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...a].entries()) {
    const next = [index + 1]
    for (let column = 0; column < b.length; column++) {
      const replaced = (row[column] ?? 0) + (letter === b[column] ? 0 : 1)
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
