import type { Livestream } from '../../validator/feed/feed.ts'
import { answer } from '../answer.ts'
import { delaysOf } from './delays.ts'
import { createEvent } from './event.ts'
import { type Address, type LightClient, openLightClient } from './light-client.ts'
import { type Login, publishPacket } from './packets.ts'
import { microseconds } from './stamp.ts'

/* A load generator: a process with publishers, which publish at QoS 1. */

interface Publisher {
  client: LightClient
  send: (stamp: number) => void
  inFlight: number
  livestreams: number
}

const publishers: Publisher[] = []
let acknowledgements: number[] = []
let acknowledged = (_publisher: Publisher) => {}
/** Events sent before this time do not count. */
let countsFrom = 0
let lastStamp = 0

export const commands = {
  /** Logs in `count` publishers. Each publishes for the livestreams of its login in turn. */
  async join(of: {
    address: Address
    count: number
    logins: { login?: Login | undefined; livestreams: Livestream[] }[]
  }): Promise<void> {
    for (let index = 0; index < of.count; index++) {
      const { login, livestreams } = of.logins[index % of.logins.length] ?? { livestreams: [] }
      const clientId = `publisher-${publishers.length}-${process.pid}`
      publishers.push(await open(of.address, clientId, login, livestreams))
    }
  },

  leave(_: object): void {
    for (const { client } of publishers) client.socket.destroy()
    publishers.length = 0
  },

  /** Sends one event every `intervalMs`, acknowledged or not. Resolves when the last event is written. */
  async pace({ count, intervalMs }: { count: number; intervalMs: number }): Promise<void> {
    const start = beginToCount()
    for (let index = 0; index < count; index++) {
      const wait = start + index * intervalMs - performance.now()
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
      // A generator that is late still reads acknowledgements on time.
      else if (index % 16 === 0) await new Promise((resolve) => setImmediate(resolve))
      publishers[index % publishers.length]?.send(nextStamp())
    }
  },

  /** Waits for the acknowledgements of `pace`. Missing ones have the time Infinity. */
  async settle({ count, seconds }: { count: number; seconds: number }) {
    await awaited(seconds, (done) => {
      acknowledged = () => acknowledgements.length >= count && done()
      if (acknowledgements.length >= count) done()
    })
    const missing = count - acknowledgements.length
    const delays = delaysOf([...acknowledgements, ...Array<number>(missing).fill(Infinity)])
    return { acknowledged: count - missing, ...delays }
  },

  /** Sends one event for every livestream. Resolves when all are acknowledged, or after `seconds`. */
  async each({ seconds = Infinity }: { seconds?: number }): Promise<{ acknowledged: number }> {
    const start = beginToCount()
    for (const publisher of publishers) {
      const left = seconds - (performance.now() - start) / 1000
      await awaited(left, (done) => {
        acknowledged = () => publisher.inFlight === 0 && done()
        for (let index = 0; index < publisher.livestreams; index++) publisher.send(nextStamp())
      })
    }
    return { acknowledged: acknowledgements.length }
  },

  /**
   * Sends up to `count` events, `inFlight` at a time over all publishers. Stops sending after `lasts` seconds. Resolves
   * when all are acknowledged, or after `within` seconds.
   */
  async flood(of: { count: number; inFlight: number; lasts?: number; within?: number }) {
    const { count, inFlight, lasts = Infinity, within = Infinity } = of
    const start = beginToCount()
    let sent = 0
    const window = Math.max(1, Math.floor(inFlight / publishers.length))
    await awaited(within, (done) => {
      const isOver = () => sent >= count || performance.now() - start >= lasts * 1000
      acknowledged = (publisher) => {
        while (!isOver() && publisher.inFlight < window) {
          sent++
          publisher.send(nextStamp())
        }
        if (isOver() && acknowledgements.length >= sent) done()
      }
      for (const publisher of publishers) acknowledged(publisher)
    })
    return {
      sent,
      acknowledged: acknowledgements.length,
      seconds: (performance.now() - start) / 1000,
      ...delaysOf(acknowledgements),
    }
  },
}

answer(commands)

function beginToCount(): number {
  acknowledgements = []
  countsFrom = performance.now()
  return countsFrom
}

/** Calls `begin` with `done`. Resolves when `done` is called, or after `seconds`. */
async function awaited(seconds: number, begin: (done: () => void) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    if (seconds < Infinity) timer = setTimeout(resolve, seconds * 1000)
    begin(resolve)
  })
  clearTimeout(timer)
  acknowledged = () => {}
}

/** The present time as a stamp, greater than the last stamp. */
function nextStamp(): number {
  lastStamp = Math.max(lastStamp + 1, microseconds())
  return lastStamp
}

async function open(
  address: Address,
  clientId: string,
  login: Login | undefined,
  livestreams: Livestream[],
): Promise<Publisher> {
  const sentAt = new Float64Array(65_536)
  const events = livestreams.map(createEvent)
  let packetId = 0
  const client = await openLightClient({
    address,
    clientId,
    login,
    clean: true,
    onPacket(bytes, start, body) {
      if (bytes[start] !== 0x40) return
      const sent = sentAt[bytes.readUInt16BE(body)] ?? 0
      if (sent >= countsFrom) acknowledgements.push(performance.now() - sent)
      publisher.inFlight--
      acknowledged(publisher)
    },
  })
  const publisher: Publisher = {
    client,
    inFlight: 0,
    livestreams: livestreams.length,
    send(stamp) {
      packetId = (packetId % 65_535) + 1
      const event = events[packetId % events.length]
      if (!event) throw new Error('no livestream to publish for')
      sentAt[packetId] = performance.now()
      publisher.inFlight++
      client.socket.write(publishPacket(event.topic, packetId, event.payload(stamp)))
    },
  }
  return publisher
}
