import type { IncomingMessage, ServerResponse } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { playing } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import { answer } from '../answer.ts'
import { type Delays, delaysOf } from './delays.ts'
import { type Address, openLightClient } from './light-client.ts'
import { type Login, publishPacket, subscribePacket } from './packets.ts'
import { startReceiver } from './receiver.ts'

/* The pair: a process with an ordinary publisher, subscriber and receiver of pushes. An attack must not harm them. */

/**
 * Counts and delays of one phase. A journey leads an event from the publisher to the subscriber or webhook. Delays: from
 * publish to receipt, milliseconds; Infinity for an event that never came.
 */
export interface Journeys extends Delays {
  sent: number
  acknowledged: number
  received: number
  /** Events received before the phase ended. */
  meanwhile: number
}

/** Interval between two events, milliseconds. */
const intervalMs = 50
/** Longest wait for missing events at the end, milliseconds. */
const patienceMs = 60_000

/** The measured phases: before, during and after the attack. */
export type Phase = 'alone' | 'beside' | 'after'

interface Journey {
  phase: Phase | 'warm'
  sentAt: number
  acknowledged: boolean
  receivedAt?: number
  pushedAt?: number
}

const journeys: Journey[] = []
const idPattern = /"playlistItemId":"pair-(\d+)"/
/** Event loop delays of this process, which lengthen the measured times. The node does not cause them. */
const ownDelay = monitorEventLoopDelay({ resolution: 5 })
const endOf: Partial<Record<Journey['phase'], number>> = {}
let phase: Journey['phase'] = 'warm'
let timer: NodeJS.Timeout | undefined

export const commands = {
  /** Starts the receiver of pushes at the address `host`: webhook, plugin target, and output below `/output`. Returns its URL. */
  async receive({ cert, key, host }: { cert: string; key: string; host: string }): Promise<string> {
    const got = (body: string, response: ServerResponse, { url }: IncomingMessage) => {
      response.writeHead(204).end()
      const { message } = JSON.parse(body)
      const number = numberOf(message ? Buffer.from(message.data, 'base64').toString() : body)
      const now = performance.now()
      // An output shows the newest title: it has all before it, too.
      const from = url === '/output' ? journeys.findIndex(({ pushedAt }) => pushedAt === undefined) : number
      for (const journey of journeys.slice(from, (number ?? -1) + 1)) journey.pushedAt ??= now
    }
    const { port } = await startReceiver({ cert, key }, got, host)
    return `https://${host}:${port}/`
  },

  /** Publishes 20 events a second from now on. */
  async start(of: { address: Address; publisher: Login; subscriber: Login; livestream: Livestream }) {
    const { address, livestream } = of
    const clientId = (name: string) => ({ clientId: `pair-${name}`, clean: true })
    const subscriber = await openLightClient({
      address,
      login: of.subscriber,
      ...clientId('subscriber'),
      onPacket(bytes, start, body, end) {
        if ((bytes[start] ?? 0) >> 4 !== 3) return
        const journey = journeyOf(bytes.toString('latin1', body, end))
        if (journey) journey.receivedAt ??= performance.now()
      },
    })
    subscriber.socket.write(subscribePacket(1, `radio/${livestream.id}/#`, 0))
    const publisher = await openLightClient({
      address,
      login: of.publisher,
      ...clientId('publisher'),
      onPacket(bytes, start, body) {
        const journey = journeys[bytes.readUInt16BE(body) - 1]
        if (bytes[start] === 0x40 && journey) journey.acknowledged = true
      },
    })
    const topic = `inbox/${livestream.institution.id}`
    const began = performance.now()
    // Not `setInterval`: after a delay it would skip the events that were due meanwhile.
    const publishDue = () => {
      while (began + journeys.length * intervalMs <= performance.now()) {
        const name = `pair-${journeys.length}`
        const event = playing(livestream, { playlistItemId: name, title: name })
        journeys.push({ phase, sentAt: performance.now(), acknowledged: false })
        publisher.socket.write(publishPacket(topic, journeys.length, Buffer.from(JSON.stringify(event))))
      }
      const untilNextMs = began + journeys.length * intervalMs - performance.now()
      timer = setTimeout(publishDue, Math.max(0, untilNextMs))
    }
    publishDue()
  },

  /** Begins a phase: events published from now on belong to it. */
  begin({ name }: { name: Phase }): void {
    endOf[phase] = performance.now()
    phase = name
    if (name === 'beside') ownDelay.enable()
    else ownDelay.disable()
  },

  /** Stops publishing, waits for missing events, and returns the journeys by phase. `pushed`: also waits for pushes. */
  async finish({ pushed }: { pushed: boolean }) {
    clearTimeout(timer)
    // In the phase `warm`, a webhook was not subscribed yet.
    const isMissing = ({ phase, acknowledged, receivedAt, pushedAt }: Journey) =>
      phase !== 'warm' && (!acknowledged || receivedAt === undefined || (pushed && pushedAt === undefined))
    const deadline = performance.now() + patienceMs
    while (performance.now() < deadline && journeys.some(isMissing)) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const phases = (at: 'receivedAt' | 'pushedAt'): Record<Phase, Journeys> => ({
      alone: summarize('alone', at),
      beside: summarize('beside', at),
      after: summarize('after', at),
    })
    return {
      events: phases('receivedAt'),
      ...(pushed && { pushes: phases('pushedAt') }),
      ownDelay: ownDelay.max / 1e6,
    }
  },
}

answer(commands)

function journeyOf(text: string): Journey | undefined {
  return journeys[numberOf(text) ?? -1]
}

function numberOf(text: string): number | undefined {
  const found = idPattern.exec(text)
  return found ? Number(found[1]) : undefined
}

function summarize(name: Phase, at: 'receivedAt' | 'pushedAt'): Journeys {
  const of = journeys.filter((journey) => journey.phase === name)
  return {
    sent: of.length,
    acknowledged: of.filter(({ acknowledged }) => acknowledged).length,
    received: of.filter((journey) => journey[at] !== undefined).length,
    meanwhile: of.filter((journey) => (journey[at] ?? Infinity) <= (endOf[name] ?? Infinity)).length,
    ...delaysOf(of.map((journey) => (journey[at] ?? Infinity) - journey.sentAt)),
  }
}
