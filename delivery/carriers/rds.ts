import { type Carrier, lengthOf, writeElement } from './carrier.ts'
import { transliterate } from './transliterate.ts'

/** Longest radiotext, characters (IEC 62106 §6.1.5.3). */
const most = 64

/** Radiotext of RDS: the characters of set G0 (EN 50067 annex E, figure E.1). */
export const radiotext: Carrier = {
  name: 'RDS radiotext',
  limit: `${most} characters of the RDS set G0`,
  write: (element) =>
    writeElement(element, {
      show: (text) => transliterate(text, (character) => codes.has(character)),
      sizeOf: lengthOf,
      most,
    }),
}

/** A text of set G0, one byte for each character. */
export function encodeRds(text: string): Buffer {
  return Buffer.from([...text].map((character) => codes.get(character) ?? 0x3f))
}

/** From 0x20 on. `\0`: not used here, because what stands there looks like another character, or is a letter of Greek. */
const rows = [
  ' !"#\0%&\'()*+,-./',
  '0123456789:;<=>?',
  '@ABCDEFGHIJKLMNO',
  'PQRSTUVWXYZ[\\]\0_',
  '\0abcdefghijklmno',
  'pqrstuvwxyz{|}\0\0',
  'áàéèíìóòúùÑÇŞß¡Ĳ',
  'âäêëîïôöûüñçşǧıĳ',
  'ª\0©‰Ǧěňő\0€£$←↑→↓',
  'º¹²³±İńűµ¿÷°¼½¾§',
  'ÁÀÉÈÍÌÓÒÚÙŘČŠŽÐĿ',
  'ÂÄÊËÎÏÔÖÛÜřčšžđŀ',
  'ÃÅÆŒŷÝÕØÞŊŔĆŚŹŦð',
  'ãåæœŵýõøþŋŕćśźŧ',
]
const codes: ReadonlyMap<string, number> = new Map(
  rows
    .flatMap((row, nth) =>
      [...row].map((character, column) => [character, 0x20 + 16 * nth + column] as const),
    )
    .filter(([character]) => character !== '\0'),
)
