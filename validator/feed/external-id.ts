/** The longest external id of a livestream that the feed does not list. */
const maxLength = 500

/**
 * Whether this is a CRID: `crid://<authority>/<id>` without white space or invisible characters (service.md §2.3).
 * What the feed lists may be called otherwise.
 */
export function isCrid(externalId: string): boolean {
  return externalId.length <= maxLength && crid.test(externalId)
}

const crid =
  /^crid:\/\/[^/\s\p{C}\p{Default_Ignorable_Code_Point}]+\/[^\s\p{C}\p{Default_Ignorable_Code_Point}]+$/u

/**
 * The same for external ids that people take for one: they differ in case, in white space or in how a character is
 * escaped. Nobody may have a livestream that reads like somebody else's.
 */
export function foldExternalId(externalId: string): string {
  return unescaped(externalId)
    .normalize('NFKC')
    .replace(/[\s\p{C}\p{Default_Ignorable_Code_Point}]/gu, '')
    .toLowerCase()
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
