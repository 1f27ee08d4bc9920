import { setTimeout as delay } from 'node:timers/promises'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { control, controlTopic, data, dataTopic, playing, playingTopic } from '../../events.ts'
import type { Random } from '../../random.ts'
import type { Issued } from '../../start-hub.ts'
import { type Client, type Door, enter } from './client.ts'
import type { Sent, Step } from './judge.ts'

export type Publisher = ReturnType<typeof createPublisher>

/**
 * A publisher with livestreams of its own. It repeats each event until a node acknowledges it: at QoS 1 as a new
 * message, at QoS 2 in the same session, perhaps on another node.
 */
export function createPublisher(parts: {
  name: string
  qos: 1 | 2
  login: Issued
  livestreams: readonly [Livestream, ...Livestream[]]
  nodes: readonly [Door, ...Door[]]
  random: Random
  /** The list to which all publishers add the events that they send. */
  sent: Sent[]
}) {
  const { name, qos, login, livestreams, nodes, random, sent } = parts
  let client: Client | undefined
  let number = 0
  let lastTime = 0
  /** Livestreams on air. The others have no events for a while. */
  let onAir = [...livestreams]

  return {
    livestreams,
    publish,
    /** Publishes until `isOver`. */
    async run(isOver: () => boolean): Promise<void> {
      while (!isOver()) {
        if (random.happens(0.03)) onAir = livestreams.filter(() => random.happens(0.6))
        const livestream = onAir[random.below(onAir.length)]
        const kind = random.oneOf(['control', 'control', 'track', 'track', 'data'] as const)
        if (livestream) await publish(livestream, kind)
        if (random.happens(0.02)) client?.cut()
        await delay(random.between(40, 250))
      }
    },
    leave: async () => client?.leave(),
  }

  /** Publishes one event. Resolves when a node has acknowledged it. */
  async function publish(livestream: Livestream, kind: Sent['kind']): Promise<void> {
    const event = nextEvent(livestream, kind)
    const { payload, ...noted } = event
    const topic = `inbox/${livestream.institution.id}`
    const message = { topic, payload, qos, messageId: (number % 60_000) + 1 }
    const trail: Step[] = []
    const entry: Sent = { ...noted, sentAt: performance.now(), attempts: 0, trail }
    const note = (what: string) => trail.push({ at: performance.now(), what: `${entry.marker} ${what}` })
    sent.push(entry)
    for (;;) {
      try {
        client = client?.isOpen ? client : await comeIn()
        note(`goes to node ${client.node}`)
        const dup = qos === 2 && entry.attempts > 0 && client.sessionPresent
        const accepted = client.publish({ ...message, dup })
        entry.attempts++
        await accepted
        break
      } catch {
        note('is not acknowledged')
        client?.cut()
        await delay(50)
      }
    }
    entry.acknowledgedAt = performance.now()
    note('is acknowledged')
    if (qos === 2) await release(message.messageId)
  }

  async function release(messageId: number): Promise<void> {
    for (;;) {
      try {
        client = client?.isOpen ? client : await comeIn()
        await client.release(messageId)
        return
      } catch {
        client?.cut()
        await delay(50)
      }
    }
  }

  function comeIn(): Promise<Client> {
    return enter(random.oneOf(nodes), { login, clientId: name, clean: qos === 1, timeoutMs: 3_000 })
  }

  function nextEvent(livestream: Livestream, kind: Sent['kind']) {
    const marker = `${name}-${++number}`
    lastTime = Math.max(lastTime + 1, Date.now())
    const time = new Date(lastTime).toISOString()
    const validUntil = new Date(lastTime + 3_600_000).toISOString()
    const [topic, fields] = {
      control: [
        controlTopic(livestream),
        control(livestream, { name: `state-${number % 3}`, time, validUntil, marker }),
      ] as const,
      track: [
        playingTopic(livestream),
        playing(livestream, { start: time, playlistItemId: marker, marker: undefined }),
      ] as const,
      data: [dataTopic(livestream), data(livestream, { start: time, cycle: 3_600, marker })] as const,
    }[kind]
    return { marker, kind, livestream: livestream.id, topic, payload: JSON.stringify(fields) }
  }
}

/** The marker in the payload of a received event. */
export function markerOf(payload: Buffer | string): string {
  const { marker, playlistItemId } = JSON.parse(payload.toString())
  return String(marker ?? playlistItemId)
}
