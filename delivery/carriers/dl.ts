import { type Carrier, writeElement } from './carrier.ts'
import { transliterate } from './transliterate.ts'

/** Longest dynamic label, bytes (EN 300 401 §7.4.5.2). */
const mostBytes = 128

/**
 * The dynamic label of DAB, in UTF-8. ODR-PadEnc writes it in the complete EBU Latin set (TS 101 756 annex C), and a space
 * for any other character. So it has only characters of that set, and fits in either.
 */
export const dynamicLabel: Carrier = {
  name: 'DAB dynamic label',
  limit: `${mostBytes} bytes of UTF-8, of the complete EBU Latin set`,
  write: (element) =>
    writeElement(element, {
      show: (text) => transliterate(text, (character) => set.has(character)),
      sizeOf: (text) => Buffer.byteLength(text),
      most: mostBytes,
    }),
}

const set: ReadonlySet<string> = new Set([
  ...'ĘĮŲĂĖĎȘȚĊĠĹŻŃąęįųăėďșțċŇĚġĺż',
  ...' !"#%&\'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz',
  ...'łŮŁĄ«ů»ĽĦáàéèíìóòúùÑÇŞß¡Ÿâäêëîïôöûüñçşğıÿ',
  ...'ĶŅ©ĢĞěňőŐ€£$ĀĒĪŪķņĻģļİńűŰ¿ľ°āēīū',
  ...'ÁÀÉÈÍÌÓÒÚÙŘČŠŽÐĿÂÄÊËÎÏÔÖÛÜřčšžđŀÃÅÆŒŷÝÕØÞŊŔĆŚŹŤðãåæœŵýõøþŋŕćśźťħ',
])
