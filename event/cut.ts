/**
 * The beginning of a text, at most `limit` UTF-16 units long. Never ends within a character: half of a surrogate pair,
 * once written as JSON, stops some readers.
 */
export function cut(text: string, limit: number): string {
  if (text.length < limit) return text
  const last = text.charCodeAt(limit - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit)
}

/** The same for a text that stays in memory. What `cut` returns may keep the whole text there. */
export function cutToKeep(text: string, limit: number): string {
  const beginning = cut(text, limit)
  // UTF-16, because other encodings replace a half of a surrogate pair that stands alone.
  return beginning === text ? text : Buffer.from(beginning, 'utf16le').toString('utf16le')
}
