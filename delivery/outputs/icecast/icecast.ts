import type { Static } from 'typebox'
import { Type } from '../../../event/type.ts'
import { icy } from '../../carriers/icy.ts'
import { type HttpRequest, judgeByStatus, output } from '../output.ts'
import { basic, joined, line, secret, serverUrl } from '../setting-schemas.ts'

const settings = Type.Object({
  url: serverUrl(),
  username: line('a user name, `admin` or `source`'),
  password: secret(line('the password of that user')),
})

/** The words of Icecast, which answers 200 also where it did nothing, and of Liquidsoap's `input.harbor`. */
const done = /Metadata update successful|^Updated metadatas for mount /

/** The title of a mount of an Icecast server, by its admin interface. */
export const icecast = output({
  name: 'icecast',
  about:
    'the title that listeners of a mount see, by the admin interface of Icecast 2.4 and newer, or of `input.harbor` of Liquidsoap',
  there: Type.String({
    pattern: '^/[^\\s\\p{Cc}?#]{1,200}$',
    description: 'a mount, such as /live.mp3',
  }),
  settings,
  example: {
    settings: { url: 'http://10.0.0.7:8000', username: 'admin', password: 'secret' },
    there: '/live.mp3',
  },
  place: ({ url }, mount) => joined(url, mount),
  carrier: icy,

  request(element, settings, mount) {
    const { text } = icy.write(element)
    const query = `mode=updinfo&mount=${encodeURIComponent(mount)}&song=${encodeURIComponent(text)}`
    return asked(`/admin/metadata?${query}`, settings)
  },

  judge(answer) {
    const judged = judgeByStatus(answer)
    if (answer.status === 401) return { ...judged, reason: 'answered 401: user or password is wrong' }
    if (judged.result !== 'acknowledged') {
      const [, why] = /<b>(?:\d+ - )?([^<]{1,150})<\/b>/.exec(answer.text) ?? []
      return why === undefined ? judged : { ...judged, reason: `${judged.reason}: ${why}` }
    }
    if (done.test(answer.text)) return judged
    const [, message = ''] = /<message>([^<]{0,150})</.exec(answer.text) ?? []
    return { result: 'refused', reason: message || 'the answer is not one of Icecast' }
  },

  memory: {
    request: (settings, mount) => asked(`/admin/stats?mount=${encodeURIComponent(mount)}`, settings),
    read({ status, text }) {
      const [, connection] = /<stream_start_iso8601>([^<]{1,40})</.exec(text) ?? []
      if (status !== 200 || connection === undefined) return undefined
      return { isEmpty: !/<title>[^<]/.test(text), connection }
    },
  },

  answers: [
    ['200, `Metadata update successful`, or `Updated metadatas for mount …` of Liquidsoap', 'acknowledged'],
    ['200 with another message', 'refused: `Mountpoint will not accept URL updates` is one'],
    [
      '400 `Source does not exist`',
      'refused: no source is connected to the mount. The title follows within 15 s of the source',
    ],
    ['401', 'refused: user or password is wrong'],
  ],
  surprises: [
    [
      'A mount of Ogg Opus or Ogg FLAC answers 200 with `<return>1</return>`, and nothing changes',
      'the message is read, and the output says `refused`; of Ogg, Vorbis has titles. [Opus and FLAC](#opus-and-flac) have them by Liquidsoap',
    ],
    [
      '`song=` keeps the artist that was set by `artist=` before, and `artist=` with nothing in it leaves ` - ` before each title. Only a new source ends it',
      'the hub sends `song=` alone. Let no other program set the artist of the mount',
    ],
    [
      'On a mount of Ogg Vorbis the artist of the source’s own comments stays beside the title: listeners get the artist of a file before artist and title of the programme (`findings/icecast-vorbis-keeps-artist.sh`)',
      'let the source send no artist: `-map_metadata -1` of ffmpeg',
    ],
    [
      'With `charset=UTF-8` listeners of MP3 and AAC get Latin-1, and what that lacks as `&#1046;`; without it they get UTF-8, and the status page shows `Ã„`',
      'the hub sends no `charset`. With `<charset>UTF-8</charset>` in the `<mount>` of Icecast’s configuration both are right. Ogg is right in any case',
    ],
    [
      "There is no way to escape `'` in `StreamTitle='…';`. Icecast’s own status page cuts at `';`, other readers at the first `'` or `;`",
      "`'` becomes `’`, `;` becomes `,`",
    ],
    [
      'A source that connects again has no title, or the one that it brings, until somebody sends one',
      'the hub looks every 15 s (`/admin/stats`, which only `admin` may ask), and sends the title again',
    ],
    [
      'While the `<fallback-mount>` of a mount plays, the mount answers 400, and its listeners get the titles of the fallback',
      'an output with that mount as well, where the hub knows its titles. Listeners who move back have no title until the hub has looked',
    ],
    [
      'Icecast 2.4.4 writes a title that is a number, `true` or `false` into `status-json.xsl` as that type, and after a title such as `-` or `1.` the page of all mounts is no JSON',
      'such a title gets a no-break space at its end',
    ],
    [
      'ezstream 1.0.2 sets `artist=` for each of its files: listeners get its artist before the title of the hub',
      '`<no_updates>yes</no_updates>` in its `<metadata>` ends that. MPD 0.23 and Liquidsoap 2.1 set no artist, but the title of each file; butt 0.1.37 only a title that it was given (`-u`, or a file), darkice 1.3 none. Mixxx (read in `shoutconnection.cpp`, not tried) sets the title of each track, but with a format other than MP3 its artist as well',
    ],
    [
      '`shout2send` of GStreamer 1.22.0 tells `Unknown - Unknown` when it begins, where the sound has no tags, and `Unknown - title` where they have no artist (`findings/gstreamer-source-tells-unknown.sh`). It and ices2 2.0.3 replace the title of the hub with that of each file',
      'after a start of the source the title of the hub comes within 15 s, after a file with the next element. `taginject tags=title=…,artist=…` in front of the encoder puts the name of your station there in place of `Unknown`',
    ],
    [
      'Liquidsoap 2.1.3 shows a title when the sound that came with it has passed its `buffer`, 12 s later. It has no `/admin/stats`, and answers 405 until its first source has come',
      'take the 12 s from `delay`. The user is `source`. A title that Liquidsoap loses, because it starts again, comes with the next element',
    ],
    [
      'A request line of more than 4 kB ends the connection without any answer',
      'a title has at most 255 bytes',
    ],
  ],
})

/** A question to the admin interface. */
function asked(path: string, { url: server, username, password }: Static<typeof settings>): HttpRequest {
  const url = joined(server, path)
  const headers = { authorization: basic(username, password) }
  return { method: 'GET', url, headers, shown: { url }, secrets: [password] }
}
