import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startChild } from '../../../bench/child.ts'
import { percentile } from '../../../telemetry/latency.ts'
import { controlTopic, stations } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { type FleetNode, startFleet } from '../../nodes/fleet.ts'
import { createRandom } from '../../random.ts'
import { withoutRedis } from '../../redis-server.ts'
import type { Issued } from '../../start-hub.ts'
import { comes, until } from '../../until.ts'
import { type Client, enter } from '../fence/client.ts'
import { missing, type Sent, type SessionRecord } from '../fence/judge.ts'
import { createPublisher, markerOf } from '../fence/publishers.ts'
import { readJournal } from '../fence/read-journal.ts'
import type { commands as crowd } from './crowd.ts'

/*
 * An upgrade, as docs/deployment.md describes it: one node after the other ends and starts again, while publishers and
 * persistent sessions go to the node that there is. `ROLLING_SESSIONS` and `ROLLING_SECONDS` make it larger, by hand.
 *
 * The sessions are in processes of their own. This one has only the publishers, and a few sessions that stay at their
 * node, so that the times it prints are those of the hub.
 */

const sessions = Number(process.env.ROLLING_SESSIONS ?? 200)
/** Time before, between and after the restarts, seconds. */
const seconds = Number(process.env.ROLLING_SECONDS ?? 3)
/** How many processes have the sessions. */
const crowds = 2
/** Sessions of this process at each node. */
const staying = 4
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
    const filters = livestreams.map(controlTopic)
    const ca = readFileSync(a.caPath, 'utf8')
    const addresses = doors.map(({ mqttPort }) => ({ port: mqttPort, ca }))
    const [here = { port: 0, ca }, ...elsewhere] = addresses
    const processes = await Promise.all(
      Array.from({ length: crowds }, () => startChild<typeof crowd>('../test/soak/nodes/crowd.ts')),
    )
    t.teardown(() => Promise.all(processes.map(({ stop }) => stop())))
    const count = Math.ceil(sessions / crowds)
    await Promise.all(
      processes.map(({ ask }) => ask('join', { count, login, filters, doors: [here, ...elsewhere] })),
    )
    const listeners = doors.flatMap((door, at) =>
      Array.from({ length: staying }, (_, index) =>
        createListener({ clientId: `player-${at}-${index}`, login, filter: 'radio/#', door }),
      ),
    )
    t.teardown(() => Promise.all(listeners.map((listener) => listener.leave())))
    await Promise.all(listeners.map((listener) => listener.comeIn()))

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
    const stays = listeners.map((listener) => listener.stay(() => isOver))
    const publishing = studios.map(async ({ publish, livestreams }) => {
      const everyMs = (stations.length / rate) * 1000
      for (let nth = 0, due = performance.now(); !isOver; nth++, due += everyMs) {
        await delay(Math.max(0, due - performance.now()))
        await publish(livestreams[nth % livestreams.length] ?? livestreams[0], 'control')
      }
    })

    const own = monitorEventLoopDelay({ resolution: 10 })
    own.enable()
    const takeOvers: number[] = []
    const areBack = async () => {
      const each = await Promise.all(processes.map(({ ask }) => ask('connected', {})))
      return each.reduce((sum, one) => sum + one) === crowds * count
    }
    await delay(seconds * 1000)
    const untouched = sent.length
    for (const node of nodes) {
      takeOvers.push(performance.now())
      const { length } = sent
      await node.stop()
      await until(areBack, patienceMs)
      const backMs = performance.now() - (takeOvers.at(-1) ?? 0)
      t.comment(`all are back after ${Math.round(backMs)} ms, ${sent.length - length} events meanwhile`)
      await node.start()
      await delay(seconds * 1000)
    }
    isOver = true
    own.disable()
    await Promise.all([...publishing, ...stays])
    t.same(
      sent.filter(({ acknowledgedAt }) => acknowledgedAt === undefined),
      [],
      'every event was acknowledged',
    )
    const lost = async () => {
      const events = sent.map(({ topic, marker }) => ({ topic, marker }))
      const theirs = await Promise.all(processes.map(({ ask }) => ask('missing', { sent: events })))
      return [...theirs.flat(), ...listeners.flatMap(({ record }) => missing(record, sent))]
    }
    await comes(async () => (await lost()).length === 0, patienceMs)
    t.same((await lost()).slice(0, 10), [], 'every session has every event')
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
    const beforeAll = latencies(listeners, sent.slice(0, untouched), [])
    t.comment(`before the first stop: ${describe(beforeAll)}`)
    t.comment(`${sent.length} events, ${describe(latencies(listeners, sent, []))}`)
    t.comment(`2 s behind the stop of each node left out: ${describe(latencies(listeners, sent, takeOvers))}`)
    t.comment(`this process stood still for ${Math.round(own.max / 1e6)} ms at most`)
  },
)

/** Every other publisher publishes at QoS 2. */
function isOfQos2(marker: string): boolean {
  return Number(/studio-(\d+)/.exec(marker)?.[1]) % 2 === 1
}

type Listener = ReturnType<typeof createListener>

/** A persistent session with one filter, which stays at its node. */
function createListener(parts: { clientId: string; login: Issued; filter: string; door: FleetNode }) {
  const { clientId, login, filter, door } = parts
  const record: SessionRecord = { clientId, filters: [], endedAt: [], received: [] }
  /** When a connection ended, and when the next one was there. */
  const away: { from: number; until: number }[] = []
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
        client = await enter(door, {
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

/**
 * How long events took to sessions, milliseconds, sorted: from the moment a connected publisher sent them, if that node
 * acknowledged them. Leaves out what was under way while the session was away, or within two seconds behind that, and
 * the same behind each of these times.
 */
function latencies(
  listeners: readonly Listener[],
  sent: readonly Sent[],
  leftOut: readonly number[],
): Float64Array {
  const once = sent.filter(({ attempts }) => attempts === 1)
  const wentAt = new Map(once.map(({ marker, trail, sentAt }) => [marker, trail?.at(-2)?.at ?? sentAt]))
  const stopped = leftOut.map((at) => ({ from: at, until: at }))
  const took = listeners.flatMap(({ record, away }) =>
    record.received.flatMap(({ marker, at, isDuplicate }) => {
      const began = wentAt.get(marker)
      const isApart =
        began !== undefined &&
        [...away, ...stopped].every(({ from, until }) => at < from || began > until + 2_000)
      return isApart && !isDuplicate ? [at - began] : []
    }),
  )
  return Float64Array.from(took).sort()
}

function describe(sorted: Float64Array): string {
  const [p50, p99, max] = [0.5, 0.99, 1].map((part) => Math.round(percentile(sorted, part)))
  return `${sorted.length} deliveries, p50 ${p50} ms, p99 ${p99} ms, ${max} ms at most`
}
