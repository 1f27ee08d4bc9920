/**
 * The beginning of a text, at most `limit` UTF-16 units long. Never ends within a character: half of a surrogate pair,
 * once written as JSON, stops some readers.
 */
export function cut(text: string, limit: number): string {
  if (text.length < limit) return text
  const end = endsInHalf.test(text.slice(0, limit)) ? limit - 1 : limit
  return text.slice(0, end)
}

const endsInHalf = /[\ud800-\udbff]$/
