import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import type { Livestream } from '../../validator/feed/feed.ts'
import { answer } from '../answer.ts'
import { delaysOf } from './delays.ts'
import { createEvent } from './event.ts'
import type { Address } from './light-client.ts'
import { microseconds } from './stamp.ts'

/* A load generator: a process with publishers that post events over HTTPS, each over a kept connection of its own. */

interface Poster {
  socket: TLSSocket
  /** Called with the status of each answer. */
  answered: (status: number) => void
  request: (stamp: number) => Buffer
}

const path = '/events/de.org.hub.v1.radio.track.playing'
const headEnd = '\r\n\r\n'

const posters: Poster[] = []
let lastStamp = 0

export const commands = {
  /** Connects `count` publishers. They share the log-ins; each posts for one livestream. */
  async join(of: {
    address: Address
    count: number
    logins: { token: string | undefined; livestreams: Livestream[] }[]
  }): Promise<void> {
    for (let index = 0; index < of.count; index++) {
      const { token, livestreams } = of.logins[index % of.logins.length] ?? { token: '', livestreams: [] }
      const livestream = livestreams[Math.floor(index / of.logins.length) % livestreams.length]
      if (!livestream) throw new Error('no livestream to publish for')
      posters.push(await open(of.address, token, livestream))
    }
  },

  /** Posts `count` events, one at a time over each connection. Returns the milliseconds until their answers. */
  async flood({ count }: { count: number }) {
    const times: number[] = []
    let refused = 0
    let sent = 0
    const start = performance.now()
    await Promise.all(
      posters.map(async (poster) => {
        while (sent < count) {
          sent++
          const began = performance.now()
          const status = await post(poster)
          times.push(performance.now() - began)
          if (status !== 201) refused++
        }
      }),
    )
    const seconds = (performance.now() - start) / 1000
    return { rate: count / seconds, ...delaysOf(times), refused }
  },
}

answer(commands)

function post(poster: Poster): Promise<number> {
  lastStamp = Math.max(lastStamp + 1, microseconds())
  return new Promise((resolve) => {
    poster.answered = resolve
    poster.socket.write(poster.request(lastStamp))
  })
}

/** A client that costs little more than its TLS socket: the answer is read up to its `content-length`. */
async function open(
  { port, ca }: Address,
  token: string | undefined,
  livestream: Livestream,
): Promise<Poster> {
  const socket = connect({ host: '127.0.0.1', servername: 'localhost', port, ca })
  socket.setNoDelay(true)
  await once(socket, 'secureConnect')
  const { payload } = createEvent(livestream)
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: localhost',
    'content-type: application/json',
    `content-length: ${payload(0).length}`,
    ...(token === undefined ? [] : [`authorization: Bearer ${token}`]),
  ]
  const poster: Poster = {
    socket,
    answered() {},
    request: (stamp) => Buffer.concat([Buffer.from(head.join('\r\n') + headEnd), payload(stamp)]),
  }
  let received = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
    const bodyAt = received.indexOf(headEnd) + headEnd.length
    if (bodyAt < headEnd.length) return
    const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(received) ?? []
    if (length === undefined) socket.destroy(new Error('an answer without content-length'))
    if (received.length < bodyAt + Number(length)) return
    const status = Number(received.slice('HTTP/1.1 '.length, bodyAt).slice(0, 3))
    received = ''
    poster.answered(status)
  })
  return poster
}
