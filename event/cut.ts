/** A publisher's text, cut to what a report or a table needs to recognise it. Null: the value is no text. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? cut(value, 500) : null
}

/**
 * The beginning of a text, at most `limit` UTF-16 units long. Never ends within a character: half of a surrogate pair,
 * once written as JSON, stops some readers.
 */
export function cut(text: string, limit: number): string {
  if (text.length < limit) return text
  const last = text.charCodeAt(limit - 1)
  const beginning = text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit)
  // A copy, because V8 keeps the whole text in memory for a slice of it.
  return beginning === text ? text : JSON.parse(JSON.stringify(beginning))
}
