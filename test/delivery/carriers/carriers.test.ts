import fc from 'fast-check'
import t from 'tap'
import { lengthOf } from '../../../delivery/carriers/carrier.ts'
import { carriers } from '../../../delivery/carriers/carriers.ts'
import { dynamicLabel } from '../../../delivery/carriers/dl.ts'
import { icy } from '../../../delivery/carriers/icy.ts'
import { encodeRds, radiotext } from '../../../delivery/carriers/rds.ts'
import { characterClasses, transliterate } from '../../../delivery/carriers/transliterate.ts'

t.test('each class of characters becomes what its row says', async (t) => {
  for (const { of, from, to } of characterClasses) {
    // `ê` is in both sets, and some signs are in one.
    for (const carrier of [radiotext, dynamicLabel])
      t.equal(carrier.write({ artist: null, title: from }).text, to, of)
  }
  t.equal(
    transliterate('ЖУК Жук Ж', (character) => /[\x20-\x7e]/.test(character)),
    'ZHUK Zhuk Zh',
  )
  t.equal(radiotext.write({ artist: null, title: 'Was?? 東京' }).text, 'Was?? ?', 'marks of a title stay')
})

t.test('a title of ICY has nothing at which readers cut', async (t) => {
  const { text } = icy.write({ artist: 'Ä Ж', title: "It's; a'; b = c 🎵" })
  t.equal(text, 'Ä Ж - It’s, a’, b = c 🎵')
})

t.test('a title that is a number or a truth value to Icecast gets a no-break space', async (t) => {
  const shown = (title: string, artist: string | null = null) => icy.write({ artist, title }).text
  for (const title of ['-', '1979', '1.', '.38', '-007', '1e5', '1e', 'True', 'false'])
    t.equal(shown(title), `${title}\u00a0`, title)
  for (const title of ['', '1.000 Jahre', '24/7', '5 -', 'True Love']) t.equal(shown(title), title, title)
  t.equal(shown('1979', '1.'), '1. - 1979')
})

t.test('control characters, line separators and marks of direction are removed first', async (t) => {
  for (const { name, write } of carriers) {
    const { text } = write({ artist: 'A\u0000\u0007\u202e', title: 'B\r\nC\u2028D\u0085E\tF\ud800\u200bG' })
    t.equal(text, 'A - B C D E FG', name)
  }
})

t.test('a text is cut at the border of a word, and places are cut with it', async (t) => {
  const element = {
    artist: 'Orchester der Küste',
    title: 'Sinfonie in drei Sätzen nach einem sehr langen Gedicht',
  }
  const { text, artist, title } = radiotext.write(element)
  t.equal(text, 'Orchester der Küste - Sinfonie in drei Sätzen nach einem sehr')
  t.strictSame(
    [artist, title],
    [
      { start: 0, length: 19 },
      { start: 22, length: lengthOf(text) - 22 },
    ],
  )
  t.equal(
    radiotext.write({ artist: null, title: 'x'.repeat(80) }).text.length,
    64,
    'one long word is cut within',
  )
  const { text: family } = icy.write({ artist: null, title: `${'x'.repeat(250)}👩‍👩‍👧` })
  t.equal(family, 'x'.repeat(250), 'an emoji of several code points is not cut')
  const onlyArtist = radiotext.write({ artist: 'x'.repeat(62), title: 'Title' })
  t.equal(onlyArtist.title, undefined)
  t.equal(onlyArtist.text, 'x'.repeat(62))
})

t.test('of a text without end, a carrier looks at the beginning', async (t) => {
  for (const { name, write } of carriers) {
    const { text } = write({ artist: null, title: `${' '.repeat(1_990)}Beginning${'Ж'.repeat(100_000)}` })
    t.match(text, /^Beginning(Ж|Zh)?$/, name)
  }
})

t.test('a letter with more marks than fit loses marks', async (t) => {
  const { text } = icy.write({ artist: null, title: `X${'\u0301'.repeat(500)} Y` })
  t.equal(text, `X${'\u0301'.repeat(127)}`)
})

t.test('an artist or a title that nothing is left of is not shown', async (t) => {
  t.strictSame(radiotext.write({ artist: '🎵', title: 'T' }), { text: 'T', title: { start: 0, length: 1 } })
  t.strictSame(radiotext.write({ artist: 'A', title: '\u0000' }), {
    text: 'A',
    artist: { start: 0, length: 1 },
  })
  t.strictSame(radiotext.write({ artist: null, title: '' }), { text: '' })
})

t.test(
  'whatever is published, each carrier gets no more than it carries, and places are right',
  async (t) => {
    const anyText = fc.string({ unit: 'binary', maxLength: 300 })
    // Icecast gets a no-break space behind what it would not take for a text.
    const noText = /^([-\d.e+]+|true|false)\u00a0$/i
    const limits = [
      [icy, (text: string) => Buffer.byteLength(text) <= 255 && !/[';]/.test(text)],
      [radiotext, (text: string) => encodeRds(text).length <= 64 && lengthOf(text) <= 64],
      [dynamicLabel, (text: string) => Buffer.byteLength(text) <= 128],
    ] as const
    for (const [carrier, isWithin] of limits) {
      fc.assert(
        fc.property(fc.option(anyText), anyText, (given, titleText) => {
          const { text, artist, title } = carrier.write({ artist: given, title: titleText })
          const shown = [...text]
          const places = [artist, title].flatMap((place) => (place ? [place] : []))
          return (
            isWithin(text) &&
            !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(text) &&
            (carrier === icy ? text.replace(noText, '$1') : text) === text.trim() &&
            places.every(({ start, length }) => start >= 0 && length > 0 && start + length <= shown.length)
          )
        }),
        { examples: [[null, '-']] },
      )
      t.pass(carrier.name)
    }
  },
)

t.test('radiotext is encoded in set G0, not in Latin-1', async (t) => {
  t.equal(
    encodeRds('ä Ä ß € $ ó').toString('hex'),
    Buffer.from([0x91, 32, 0xd1, 32, 0x8d, 32, 0xa9, 32, 0xab, 32, 0x86]).toString('hex'),
  )
})
