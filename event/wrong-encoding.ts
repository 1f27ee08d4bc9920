/**
 * Whether a text was read in the wrong encoding on its way: UTF-8 as Latin-1 or Windows-1252 (`KÃ¼ste` for `Küste`), or
 * the other way round, which leaves U+FFFD.
 *
 * Right texts have such letters too: `MANHÃ`, `BLÅ`, `HYVÄ`. So only pairs count of which the second character never
 * follows the first one in a right text, or only within a word. Takes time linear in the length of the text.
 */
export function isWronglyDecoded(text: string): boolean {
  return wrong.test(text) || text.includes('\ufffd')
}

/* The characters that the bytes 80 to BF become: those of Latin-1, and those of Windows-1252. */
const trail = String.raw`[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]`
/** Punctuation among them that may follow the last letter of a right text. */
const closing = '«»…‘“”–—‹›'
const symbol = String.raw`[\x80-\x9f¡-ª¬®-º¼-¿€‚ƒ„†‡ˆ‰Š•ŒŽ˜™šœžŸ]`
const lower = 'a-zß-öø-ÿ'
const upper = 'A-ZÀ-ÖØ-Þ'

const sequences = [
  String.raw`Â[\xa0-\xbf]`,
  `[ÃÄÅ]${symbol}`,
  String.raw`Ã\xad`,
  `(?<![${upper}])Ã\\xa0`,
  `(?<=[${lower}])[ÃÄÅ][’${closing}]`,
  `[ÃÄÅ][${closing}](?=[${lower}])`,
  `Ã[…‘“”–‹](?=[${upper}])`,
  // Punctuation and symbols, such as a dash or a note.
  String.raw`â[€‚„†–˜™œ\x80\x82\x84\x86\x96\x98\x99\x9c\x9d]${trail}`,
  String.raw`ð[Ÿ\x9f]${trail}`,
  // Greek, Cyrillic, Hebrew and Arabic letters; then those of East Asia.
  `(?:[ÎÏÐÑ×ØÙÚÛ]${trail}){2}`,
  `(?:[à-ï]${trail}{2}){2}`,
]

/** The look at two characters comes first, because nearly no place of a text passes it. */
const wrong = new RegExp(`(?=[ÂÃÄÅÎÏÐÑ×ØÙÚÛâð]${trail}|[à-ï]${trail}{2})(?:${sequences.join('|')})`)
