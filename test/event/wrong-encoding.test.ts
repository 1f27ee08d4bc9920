import t from 'tap'
import { isWronglyDecoded } from '../../event/wrong-encoding.ts'
import { between, words } from '../words.ts'

/* Right texts that do not warn are in `test/event/warnings.test.ts`. */

/**
 * The characters 80 to 9F of Windows-1252. Unused ones stay as in Latin-1. `TextDecoder` of Node 20 reads all of them as
 * Latin-1.
 */
const ofWindows = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

const latin1 = (text: string) => Buffer.from(text).toString('latin1')
/** `text` as those see it who read its UTF-8 in another encoding. */
const misread = {
  'Latin-1': latin1,
  'Windows-1252': (text: string) =>
    latin1(text).replace(/[\x80-\x9f]/g, (control) => ofWindows[control.charCodeAt(0) - 0x80] ?? ''),
}

/** In Windows-1252 they become a letter before punctuation, as right texts have it: `Ã–` and `BLÃ…`. */
const ambiguous = ['Ö', 'BLÅ']

const texts = [
  ...['Küste', 'Björk', 'Motörhead', 'KÖLN', 'BJÖRK', 'MÜLLER', 'Österreich', 'Ärzte', 'ÄÄNI', 'Straße', 'Ö'],
  ...['Åsa', 'Ålesund', 'Ærø', 'BLÅ', 'Ørsted', 'Sigur Rós', 'Ásgeir', 'Þú', 'Ðe'],
  ...between(`Noël | NOËL | François | Beyoncé | BEYONCÉ | à la | voilà ! | Où | Île | Château | Cœur | Zoé`),
  ...between(`María | Ñandú | España | ESPAÑA | MANHÃ | São João | Coração | ÓSCAR | Perché | Però | Così`),
  ...words(`Łódź Zażółć Świat Żółć mądry męka końca Dvořák Čech Škvorecký děti Božena`),
  ...['İstanbul', 'Işık', 'Ağır', 'Ştefan', 'Erdős', 'tűz', 'Rīga', 'Ķekava', 'Žemaitė', 'Đorđe', 'Ćiro'],
  ...between(`It’s | “right” | „Gans“ | Ebbe – Flut | Ebbe… | 5 € | ♪ Lied | Hub™ | «oui» | 5° | © Mira | ½`),
  ...['Москва', 'Αθήνα', 'שלום', 'فيروز', '日本語', '한국어', '🎵'],
]

for (const [encoding, read] of Object.entries(misread)) {
  t.test(`UTF-8 that was read as ${encoding} is recognised`, async (t) => {
    for (const text of texts) {
      const isAmbiguous = encoding === 'Windows-1252' && ambiguous.includes(text)
      t.equal(isWronglyDecoded(read(text)), !isAmbiguous, `${text}: ${read(text)}`)
    }
    for (const text of texts) t.notOk(isWronglyDecoded(text), text)
  })
}

t.test('so is what was read wrongly twice, and what lost characters', async (t) => {
  const read = misread['Windows-1252']
  t.ok(isWronglyDecoded(read(read('Küste'))))
  t.ok(isWronglyDecoded(Buffer.from('Küste', 'latin1').toString('utf8')))
})

t.test('it need not be the whole text', async (t) => {
  t.ok(isWronglyDecoded(`Müller – ${misread['Latin-1']('François')}`))
})
