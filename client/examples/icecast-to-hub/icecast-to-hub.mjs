import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { connectPublisher } from 'now-playing-hub-client'
import { readTitles, titleOf } from './titles.mjs'

const { HOST, PORT, CA, INSTITUTION, PUB_USER, PUB_PASSWORD, STREAM, SERVICE } = process.env
const { SECONDS = '240', BEHIND = '0' } = process.env
const service = JSON.parse(SERVICE)
const publisher = connectPublisher({
  url: `mqtts://${HOST}:${PORT}`,
  ca: CA,
  username: PUB_USER,
  password: PUB_PASSWORD,
  institution: INSTITUTION,
})

/** An event from all that an ICY stream says. README.md has what is missing there. */
function toEvent(text) {
  const [, artist, title = text] = /^(.+?) +[-–—] +(.+)$/s.exec(text) ?? []
  const start = new Date(Date.now() - Number(BEHIND) * 1000).toISOString()
  return {
    event: 'de.org.hub.v1.radio.track.playing',
    type: artist === undefined ? 'live' : 'music',
    start,
    length: Number(SECONDS),
    title,
    ...(artist !== undefined && { artist }),
    playlistItemId: createHash('sha256').update(`${start} ${text}`).digest('hex').slice(0, 32),
    services: [service],
  }
}

let last
function take(block) {
  const text = titleOf(block)
  // A stream repeats its title for each listener, and has an empty one before the first.
  if (!text || text === last) return
  last = text
  publisher.publish(toEvent(text)).then(
    ({ outcome }) => console.log(outcome, text),
    (error) => console.error(error.outcome ?? error.code, text, error.message),
  )
}

for (let failures = 0; ; failures++) {
  const began = Date.now()
  await readTitles(STREAM, take).then(
    () => console.error('the stream has ended'),
    (error) => console.error(error.message),
  )
  if (Date.now() - began > 60_000) failures = 0
  await pause(Math.min(60_000, 1_000 * 2 ** Math.min(failures, 6)) * (1 + Math.random() / 4))
}
