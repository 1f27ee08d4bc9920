/** Maximum number of characters of an external id that no feed has listed. */
const maxLength = 500

/**
 * Whether this is a CRID: `crid://<authority>/<id>` without white space or invisible characters (service.md §2.3). The
 * feed may list other external ids.
 */
export function isCrid(externalId: string): boolean {
  return externalId.length <= maxLength && crid.test(externalId)
}

const crid =
  /^crid:\/\/[^/\s\p{C}\p{Default_Ignorable_Code_Point}]+\/[^\s\p{C}\p{Default_Ignorable_Code_Point}]+$/u

/**
 * Returns the same text for external ids that look alike (case, white space, percent-encoding). An institution must not
 * imitate the livestream of another institution.
 */
export function foldExternalId(externalId: string): string {
  const known = folded.get(externalId)
  if (known !== undefined) return known
  const result = fold(externalId)
  if (folded.size >= maxFolded) folded.clear()
  folded.set(externalId, result)
  return result
}

/** Results of `foldExternalId`. The hub may need each result three times for one service. */
const folded = new Map<string, string>()
const maxFolded = 1_000

function fold(externalId: string): string {
  const visible = externalId.replace(escapedCharacter, unescaped).normalize('NFKC').replace(hidden, '')
  // toUpperCase makes ß and ss, σ and ς, ı and i equal. The first toLowerCase turns ẞ into ß.
  return visible.toLowerCase().toUpperCase().toLowerCase().normalize('NFKC')
}

const hidden = /[\s\p{C}\p{Default_Ignorable_Code_Point}]/gu

/** One character in UTF-8 with every byte percent-encoded, such as `%C3%BC` for ü. */
const escapedCharacter =
  /%[0-7][\da-f]|%[cd][\da-f]%[89ab][\da-f]|%e[\da-f](?:%[89ab][\da-f]){2}|%f[0-7](?:%[89ab][\da-f]){3}/gi

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
