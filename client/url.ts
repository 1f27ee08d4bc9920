/** Reads a URL. Undefined: the text is none. `URL.canParse` is missing in Safari 16 and Chrome 119. */
export function readUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
