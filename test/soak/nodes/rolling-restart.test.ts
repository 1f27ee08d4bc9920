import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { controlTopic, stations } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { comes, type FleetNode, startFleet, until } from '../../nodes/fleet.ts'
import { createRandom } from '../../random.ts'
import { withoutRedis } from '../../redis-server.ts'
import type { Issued } from '../../start-hub.ts'
import { type Client, enter } from '../fence/client.ts'
import { missing, type Sent, type SessionRecord } from '../fence/judge.ts'
import { createPublisher, markerOf } from '../fence/publishers.ts'
import { readJournal } from '../fence/read-journal.ts'

/*
 * An upgrade, as docs/deployment.md describes it: one node after the other ends and starts again, while publishers and
 * persistent sessions go to the node that there is. `ROLLING_SESSIONS` and `ROLLING_SECONDS` make it larger, by hand.
 */

const sessions = Number(process.env.ROLLING_SESSIONS ?? 200)
/** Time before, between and after the restarts, seconds. */
const seconds = Number(process.env.ROLLING_SECONDS ?? 3)
/** All publishers together, a second. */
const rate = 50
const patienceMs = 60_000

t.setTimeout(600_000)

t.test(
  'two nodes with two workers each start again in turn: nothing is lost, nothing of QoS 2 comes twice',
  { skip: withoutRedis, timeout: 600_000 },
  async (t) => {
    const ports = await Promise.all(Array.from({ length: 4 }, freePort))
    const { nodes, a } = await startFleet(t, 2, {
      env: {
        HUB_WORKERS: '2',
        HUB_PUBLISH_RATE: '0',
        HUB_MAX_CONNECTIONS_PER_ADDRESS: '0',
        HUB_HISTORY: '100000',
        HUB_QUEUE_LIMIT: '100000',
      },
      envOf: (index) => ({
        HUB_MQTT_PORT: String(ports[2 * index]),
        HUB_HTTPS_PORT: String(ports[2 * index + 1]),
      }),
    })
    const [first, ...others] = nodes
    if (!first) throw new Error('there is no node')
    const doors = [first, ...others] as const
    const livestreams = stations.flat()
    const login = await a.subscriber('radio/#')
    const listeners = Array.from({ length: sessions }, (_, index) => {
      const livestream = livestreams[index % livestreams.length] ?? livestreams[0]
      if (!livestream) throw new Error('there is no livestream')
      return createListener({ clientId: `player-${index}`, login, filter: controlTopic(livestream), doors })
    })
    t.teardown(() => Promise.all(listeners.map((listener) => listener.leave())))
    await inGroups(listeners, (listener) => listener.comeIn())

    const sent: Sent[] = []
    const studios = await Promise.all(
      stations.map(async ([one, ...more], index) => {
        if (!one) throw new Error('an institution without livestreams')
        const name = `studio-${index}`
        const login = await a.publisher([one.institution.id])
        const [qos, random] = [index % 2 === 0 ? 1 : 2, createRandom(name)] as const
        return createPublisher({ name, qos, login, livestreams: [one, ...more], nodes: doors, random, sent })
      }),
    )
    t.teardown(() => Promise.all(studios.map((studio) => studio.leave())))
    let isOver = false
    const staying = listeners.map((listener) => listener.stay(() => isOver))
    const publishing = studios.map(async ({ publish, livestreams }) => {
      const everyMs = (stations.length / rate) * 1000
      for (let nth = 0, due = performance.now(); !isOver; nth++, due += everyMs) {
        await delay(Math.max(0, due - performance.now()))
        await publish(livestreams[nth % livestreams.length] ?? livestreams[0], 'control')
      }
    })

    await delay(seconds * 1000)
    for (const node of nodes) {
      await node.stop()
      await node.start()
      await delay(seconds * 1000)
    }
    isOver = true
    await Promise.all([...publishing, ...staying])
    t.same(
      sent.filter(({ acknowledgedAt }) => acknowledgedAt === undefined),
      [],
      'every event was acknowledged',
    )
    const lost = () => listeners.flatMap(({ record }) => missing(record, sent))
    await comes(() => lost().length === 0, patienceMs)
    t.same(lost().slice(0, 10), [], 'every session has every event')
    const [one, ...rest] = livestreams
    if (!one) throw new Error('there is no livestream')
    const journal = await readJournal(t, a, [one, ...rest])
    const atQos2 = journal.map(({ marker }) => marker).filter((marker) => isOfQos2(marker))
    t.equal(
      atQos2.length,
      sent.filter(({ marker }) => isOfQos2(marker)).length,
      'those of QoS 2 are all there',
    )
    t.equal(new Set(atQos2).size, atQos2.length, 'once')
    const { p99, count } = latencyOf(listeners, sent)
    t.comment(`${sent.length} events, ${count} deliveries, p99 ${p99} ms outside of take-overs`)
  },
)

/** Every other publisher publishes at QoS 2. */
function isOfQos2(marker: string): boolean {
  return Number(/studio-(\d+)/.exec(marker)?.[1]) % 2 === 1
}

type Listener = ReturnType<typeof createListener>

/** A persistent session with one filter. It comes back whenever its connection ends, to the next node. */
function createListener(parts: {
  clientId: string
  login: Issued
  filter: string
  doors: readonly [FleetNode, ...FleetNode[]]
}) {
  const { clientId, login, filter, doors } = parts
  const record: SessionRecord = { clientId, filters: [], endedAt: [], received: [] }
  /** When a connection ended, and when the next one was there. */
  const away: { from: number; until: number }[] = []
  let next = Number(clientId.split('-').at(-1))
  let client: Client | undefined

  return {
    record,
    away,
    comeIn,
    leave: async () => client?.leave(),

    /** Stays connected until `isOver`, and is connected then. */
    async stay(isOver: () => boolean): Promise<void> {
      while (!isOver()) {
        await Promise.race([client?.closed, delay(200)])
        if (!client?.isOpen) await comeIn()
      }
    },
  }

  async function comeIn(): Promise<void> {
    const from = performance.now()
    const connection = away.length
    await until(async () => {
      try {
        client = await enter(doors[next++ % doors.length] ?? doors[0], {
          login,
          clientId,
          clean: false,
          timeoutMs: 10_000,
          onMessage({ payload, retain: isRetained, dup: isDuplicate }) {
            const at = performance.now()
            record.received.push({ marker: markerOf(payload), at, isRetained, isDuplicate, connection })
          },
        })
        return true
      } catch {
        return false
      }
    }, patienceMs)
    away.push({ from, until: performance.now() })
    if (record.filters.length > 0) return
    await client?.subscribe(filter)
    record.filters.push({ at: performance.now(), filter, state: 'granted' })
  }
}

/** How long events took to sessions, leaving out two seconds behind each new connection of the session. */
function latencyOf(listeners: readonly Listener[], sent: readonly Sent[]): { p99: number; count: number } {
  const sentAt = new Map(sent.map((event) => [event.marker, event.sentAt]))
  const isApart = ({ away }: Listener, at: number) =>
    away.every(({ from, until }) => at < from || at > until + 2_000)
  const took = listeners.flatMap((listener) =>
    listener.record.received.flatMap(({ marker, at, isDuplicate }) => {
      const began = sentAt.get(marker)
      return began === undefined || isDuplicate || !isApart(listener, began) ? [] : [at - began]
    }),
  )
  const sorted = Float64Array.from(took).sort()
  return { p99: Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0), count: took.length }
}

/** Works for 50 items at once. */
async function inGroups<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  for (let from = 0; from < items.length; from += 50)
    await Promise.all(items.slice(from, from + 50).map(work))
}
