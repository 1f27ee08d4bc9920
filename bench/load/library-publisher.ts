import mqtt from 'mqtt'
import { connectPublisher } from '../../client/node.ts'
import { playing } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import { answer } from '../answer.ts'
import type { Address } from './light-client.ts'
import type { Login } from './packets.ts'

/* A publisher as people write it, with the package `mqtt` or with the client library: a process of its own. */

/** How a publisher is written. */
export type Way = 'mqtt, no feedback' | 'mqtt, parses feedback' | 'client library'

interface Publisher {
  publish(event: Record<string, unknown>): Promise<unknown>
  /** Resolves when this many reports have come, in all. */
  reported(count: number): Promise<unknown>
}

interface Joining {
  address: Address
  login: Login
  livestream: Livestream
}

const title = 'x'.repeat(500)

let publisher: Publisher | undefined
let livestream: Livestream | undefined
let published = 0

export const commands = {
  async join({ way, ...of }: Joining & { way: Way }): Promise<void> {
    livestream = of.livestream
    publisher =
      way === 'client library' ? withLibrary(of) : await withMqtt(of, way === 'mqtt, parses feedback')
  },

  /** Publishes `count` events, `inFlight` at a time: the next ones when all are answered. */
  async flood({ count, inFlight }: { count: number; inFlight: number }): Promise<void> {
    for (const last = published + count; published < last; ) {
      const answers: Promise<unknown>[] = []
      while (published < last && answers.length < inFlight) answers.push(publish(++published))
      await Promise.all(answers)
      await publisher?.reported(published)
    }
  },
}

answer(commands)

function publish(number: number): Promise<unknown> {
  if (!publisher || !livestream) throw new Error('no publisher has joined')
  const start = new Date().toISOString()
  return publisher.publish(playing(livestream, { start, playlistItemId: `item-${number}`, title }))
}

function withLibrary({ address, login, livestream }: Joining): Publisher {
  const { username, password } = login
  const url = `mqtts://localhost:${address.port}`
  const library = connectPublisher({
    url,
    ca: address.ca,
    username,
    password,
    institution: livestream.institution.id,
  })
  return { publish: library.publish, reported: async () => {} }
}

async function withMqtt({ address, login, livestream }: Joining, readsFeedback: boolean): Promise<Publisher> {
  const { id } = livestream.institution
  const client = await mqtt.connectAsync(`mqtts://localhost:${address.port}`, { ...login, ca: address.ca })
  const publish = (event: object) => client.publishAsync(`inbox/${id}`, JSON.stringify(event), { qos: 1 })
  if (!readsFeedback) return { publish, reported: async () => {} }
  let reports = 0
  let told = () => {}
  client.on('message', (_topic, payload) => {
    const report = JSON.parse(payload.toString())
    if (report.outcome === 'published') reports++
    told()
  })
  await client.subscribeAsync(`feedback/${id}`, { qos: 1 })
  return {
    publish,
    reported: (count) =>
      new Promise<void>((resolve) => {
        told = () => reports >= count && resolve()
        told()
      }),
  }
}
