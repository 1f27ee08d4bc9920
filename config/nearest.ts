/** Of some names the one that was probably meant: in the fewest letters different, written in any style. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const asked = plain(name)
  const ranked = known.map((one) => ({ one, distance: distance(asked, plain(one)) }))
  return ranked.sort((a, b) => a.distance - b.distance)[0]?.one
}

/** `HUB_MQTT_PORT` and `mqttPort` are the same name. What is longer than any setting needs no exact answer. */
function plain(name: string): string {
  return name.slice(0, 64).replace(/^HUB_/i, '').replace(/[_-]/g, '').toLowerCase()
}

/** Letters to add, remove or replace (Levenshtein). */
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
