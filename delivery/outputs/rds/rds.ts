import { Type } from '../../../event/type.ts'
import { encodeRds, radiotext } from '../../carriers/rds.ts'
import { output } from '../output.ts'
import { host, line, port } from '../setting-schemas.ts'

/** How encoders want the text, and the tags of RT+: one of three numbers each, at most two. */
const commandSets = {
  RT: {
    text: 'RT',
    write: (tags: Tag[]) => (tags.length === 0 ? '0,0,0' : tags.map((tag) => tag.join()).join(';')),
  },
  RT1: {
    text: 'RT1',
    write: ([first = none, second = none]: Tag[]) =>
      [...first, ...second].map((number) => `${number}`.padStart(2, '0')).join(),
  },
}
type Tag = readonly [type: number, start: number, length: number]
const none: Tag = [0, 0, 0]

const settings = Type.Object({
  host: host(),
  port: port(),
  commands: Type.Optional(
    Type.Unsafe<keyof typeof commandSets>({
      type: 'string',
      enum: Object.keys(commandSets),
      description: '`RT`, which is the default, or `RT1`: the commands of the encoder',
    }),
  ),
})

/** Content types of RT+ (IEC 62106-6 annex). */
const contentTypes = { title: 1, artist: 4 }
/** The second tag of RT+ has five bits for its length, the first six. */
const mostOfSecond = 31

/** Radiotext and RT+ of an RDS encoder, by its text protocol over TCP. */
export const rds = output({
  name: 'rds',
  about: 'radiotext and RT+ of an RDS encoder that takes `RT=` or `RT1=`, and `RTP=`, as lines over TCP',
  there: line('a text for people: the encoder is that of host and port', 200),
  settings,
  example: { settings: { host: '10.0.0.9', port: 7005 }, there: 'FM 98.2' },
  place: ({ host, port }) => `${host}:${port}`,
  carrier: radiotext,
  problems: (_, { length }) =>
    length < 2 ? [] : [{ field: 'livestreams', expected: 'one livestream: an encoder shows one text' }],

  request(element, { host, port, commands = 'RT' }) {
    const written = radiotext.write(element)
    const { text, write } = commandSets[commands]
    const line = `${text}=${written.text}`
    const tags = `RTP=${write(element.type === 'idle' ? [] : tagsOf(written))}`
    const bytes = Buffer.concat([encodeRds(line), end, encodeRds(tags), end])
    return { host, port, bytes, text: `${line}\n${tags}` }
  },

  answers: [
    [
      'the encoder took the bytes',
      'acknowledged. What it answers is not read: encoders differ, and many are silent',
    ],
    ['no connection, or none within 20 s', 'failed: tried again'],
  ],
  surprises: [
    [
      'The second RT+ tag has only five bits for its length, which is the number of characters less one',
      'the longer tag goes first',
    ],
    [
      'Tags stay when only the text changes, and then point anywhere',
      'each `RT=` is followed by `RTP=`; for the idle text it is `RTP=0,0,0`',
    ],
    [
      'rds95 (of 2025-08-06) takes neither `RT=` nor tags with a semicolon: it wants `RT1=`, and six numbers with commas in `RTP=`. The manuals of P132 and P232U of Pira and of RDS-C of FMUSER name these commands, too. rds95 takes its text for UTF-8, and loses `É`, `È`, `Í`, `Ì` and the letter behind',
      '`"commands": "RT1"` sends `RT1=`, and `RTP=04,00,13,01,17,06`; for the idle text `RTP=00,00,00,00,00,00`',
    ],
    [
      'Radiotext is neither UTF-8 nor Latin-1: `ä` is 0x91, `$` is 0xAB',
      'the bytes are those of set G0, one for each character',
    ],
    [
      'gr-rds 3.10 of GNU Radio takes radiotext for ISO 8859-2: it shows `Ń` for `Ä`, `Ť` for `$`, and none of `ä`, `é`, `ß` (`findings/gr-rds-reads-latin-2.sh`)',
      'nothing: radios show the right letters',
    ],
  ],
})

const end = Buffer.from('\r\n')

/** The longer one first. */
function tagsOf({ title, artist }: ReturnType<typeof radiotext.write>): Tag[] {
  const tags: Tag[] = []
  if (artist) tags.push([contentTypes.artist, artist.start, artist.length - 1])
  if (title) tags.push([contentTypes.title, title.start, title.length - 1])
  return tags.sort(([, , a], [, , b]) => Number(b > mostOfSecond) - Number(a > mostOfSecond))
}
