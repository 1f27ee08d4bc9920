import { Type } from '../../../event/type.ts'
import { encodeRds, radiotext } from '../../carriers/rds.ts'
import { output } from '../output.ts'
import { host, line, port } from '../setting-schemas.ts'

const settings = Type.Object({
  host: host(),
  port: port(),
})

/** Content types of RT+ (IEC 62106-6 annex). */
const contentTypes = { title: 1, artist: 4 }
/** The second tag of RT+ has five bits for its length, the first six. */
const mostOfSecond = 31

/** Radiotext and RT+ of an RDS encoder, by its text protocol over TCP. */
export const rds = output({
  name: 'rds',
  about: 'radiotext and RT+ of an RDS encoder that takes `RT=` and `RTP=` lines over TCP',
  there: line('a text for people: the encoder is that of host and port', 200),
  settings,
  example: { settings: { host: '10.0.0.9', port: 7005 }, there: 'FM 98.2' },
  place: ({ host, port }) => `${host}:${port}`,
  carrier: radiotext,
  problems: (_, { length }) =>
    length < 2 ? [] : [{ field: 'livestreams', expected: 'one livestream: an encoder shows one text' }],

  request(element, { host, port }) {
    const written = radiotext.write(element)
    const line = `RT=${written.text}`
    const tags = `RTP=${tagsOf(element.type === 'idle' ? { text: '' } : written)}`
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
      'Radiotext is neither UTF-8 nor Latin-1: `ä` is 0x91, `$` is 0xAB',
      'the bytes are those of set G0, one for each character',
    ],
  ],
})

const end = Buffer.from('\r\n')

function tagsOf({ title, artist }: ReturnType<typeof radiotext.write>): string {
  const tags = [
    ...(artist ? [[contentTypes.artist, artist.start, artist.length - 1] as const] : []),
    ...(title ? [[contentTypes.title, title.start, title.length - 1] as const] : []),
  ].sort(([, , a], [, , b]) => Number(b > mostOfSecond) - Number(a > mostOfSecond))
  return tags.length === 0 ? '0,0,0' : tags.map((tag) => tag.join()).join(';')
}
