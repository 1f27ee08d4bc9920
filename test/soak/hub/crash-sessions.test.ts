import { setTimeout as delay } from 'node:timers/promises'
import { stations } from '../../events.ts'
import { patienceMs } from '../../patience.ts'
import { createRandom, type Random } from '../../random.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { type Issued, issue, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'
import { type Client, type Door, enter } from '../fence/client.ts'
import { type Sent, type SessionRecord, sentAgain } from '../fence/judge.ts'
import { createPublisher, markerOf } from '../fence/publishers.ts'

/*
 * Kills a node under load CRASH_ROUNDS times, while persistent sessions and publishers come and go. CRASH_SEED
 * determines what clients do.
 */
const rounds = Number(process.env.CRASH_ROUNDS ?? 3)
const seed = process.env.CRASH_SEED ?? '1'
/**
 * The hub sends a session its messages within this time after a log-in or an accepted event, milliseconds. The time for
 * which the machine holds everything up comes on top.
 */
const servedMs = 1_000

onEachStore(`sessions lose nothing in ${rounds} times kill -9, seed ${seed}`, async (t, store) => {
  const home = await temporaryDirectory(t)
  const limits = { HUB_PUBLISH_RATE: '0', HUB_QUEUE_LIMIT: '100000', HUB_MAX_CONNECTIONS_PER_ADDRESS: '0' }
  const start = () => spawnHub(t, home, { ...limits, ...store })
  let hub = await start()
  const door: Door = {
    index: 0,
    get mqttPort() {
      return hub.mqttPort
    },
    get caPath() {
      return hub.caPath
    },
  }
  const sent: Sent[] = []
  const publishers = await Promise.all(
    ([1, 2, 1, 2] as const).map(async (qos, index) => {
      const [first, second] = stations[index] ?? []
      if (!first) throw new Error(`the sample feed has no institution ${index}`)
      const name = `studio-${index}-qos-${qos}`
      const login = await issue(hub, { role: 'publisher', label: name, institutions: [first.institution.id] })
      const livestreams = [first, ...(second ? [second] : [])] as const
      const random = createRandom(`${seed} ${name}`)
      return { random, ...createPublisher({ name, qos, login, livestreams, nodes: [door], random, sent }) }
    }),
  )
  const login = await issue(hub, { role: 'subscriber', label: 's', filters: ['radio/#'] })
  const sessions = ([0, 1, 2] as const).flatMap((qos) =>
    (['stays', 'comes and goes', 'is often away'] as const).map((habit) =>
      createVisitor({ door, login, qos, habit, random: createRandom(`${seed} ${qos} ${habit}`) }),
    ),
  )
  t.teardown(() => Promise.all([...sessions, ...publishers].map((client) => client.leave())))

  let isOver = false
  const isDone = () => isOver
  await Promise.all(sessions.map(({ comeIn }) => comeIn()))
  const running = Promise.all([
    ...sessions.map((session) => session.run(isDone)),
    ...publishers.map((publisher) => publishOn(publisher, isDone)),
  ])
  const acknowledged = () => sent.filter(({ acknowledgedAt }) => acknowledgedAt !== undefined).length
  const chance = createRandom(`${seed} kills`)
  for (let round = 0; round < rounds; round++) {
    const enough = acknowledged() + chance.between(100, 400)
    const deadline = performance.now() + patienceMs
    while (acknowledged() < enough && performance.now() < deadline) await delay(chance.between(1, 20))
    await hub.stop('SIGKILL')
    hub = await start()
  }
  isOver = true
  await running

  // Give the hub time to send all clients everything.
  const lost = () => sessions.flatMap((session) => missing(session, sent))
  for (const end = performance.now() + patienceMs; performance.now() < end; await delay(50)) {
    await Promise.all(sessions.map(({ comeIn }) => comeIn()))
    if (lost().length === 0) break
  }
  const deliveries = sessions.reduce((sum, { record }) => sum + record.received.length, 0)
  t.comment(`${acknowledged()} events, ${deliveries} deliveries, seed ${seed}`)
  t.ok(acknowledged() > rounds * 100, 'there was something to lose')
  t.same(lost(), [], 'every acknowledged event reaches every session that is owed it')
  t.same(
    sessions.flatMap((session) => uninvited(session, sent)),
    [],
    'nothing waits for sessions that were granted QoS 0',
  )
  t.same(
    sessions.flatMap(({ record }) => sentAgain(record, sent)),
    [],
    'nothing comes twice in one connection without DUP',
  )
  const published = new Set(sent.map(({ marker }) => marker))
  t.same(
    sessions.flatMap(({ record }) => record.received.filter(({ marker }) => !published.has(marker))),
    [],
    'and nothing that was not published',
  )
  await hub.stop('SIGTERM')
})

const still = { until: Infinity, closed: Infinity, begun: Infinity }

/**
 * A connection of a session: requested at `asked`, established at `from`, over at `until`, closed at `closed`. Between
 * `until` and `closed`, the hub may read a PUBLISH before the DISCONNECT.
 */
interface Visit {
  asked: number
  from: number
  until: number
  closed: number
  /**
   * The session must get the events accepted between `from` and `begun`. If the client leaves by itself, `begun` is
   * `servedMs + heldUpMs` before `until`, because the hub needs that time to send. Otherwise `begun` is `until`.
   */
  begun: number
  /** The longest time for which the machine held up this process or the node, milliseconds. */
  heldUpMs: number
}

interface Visited {
  qos: 0 | 1 | 2
  record: SessionRecord
  visits: readonly Visit[]
  subscribedAt: number
}

/**
 * Acknowledged events that a session of QoS 1 or 2 misses. Of the events after its SUBSCRIBE, the hub owes the session:
 * - all control events
 * - all events that were accepted during a visit
 * - if a visit is longer than `servedMs + heldUpMs`: of each topic, the newest event before the visit, or a later one
 */
function missing({ qos, record, visits, subscribedAt }: Visited, sent: readonly Sent[]): string[] {
  if (qos === 0) return []
  const got = new Set(record.received.map(({ marker }) => marker))
  const due = sent.filter((event) => event.sentAt > subscribedAt && event.acknowledgedAt !== undefined)
  const wanted = due.filter(
    (event) => event.kind === 'control' || visits.some(({ from, begun }) => isWithin(from, begun, event)),
  )
  const ofEach = wanted
    .filter(({ marker }) => !got.has(marker))
    .map((event) => `${record.clientId} misses ${event.marker} (${event.kind}, ${placeOf(event, visits)})`)
  const served = visits.filter(({ from, until, heldUpMs }) => until - from > servedMs + heldUpMs)
  const newest = served.flatMap((visit) =>
    [...newestBefore(visit, due)].filter(([topic, event]) => {
      const since = sent
        .slice(sent.indexOf(event))
        .filter((other) => other.topic === topic && other.sentAt < visit.from)
      return !since.some(({ marker }) => got.has(marker))
    }),
  )
  return [
    ...ofEach,
    ...newest.map(([topic, { marker }]) => `${record.clientId} misses ${marker}, newest of ${topic}`),
  ]
}

/** For a report: when an event was published, relative to a session's visits. */
function placeOf({ sentAt, acknowledgedAt = Infinity }: Sent, visits: readonly Visit[]): string {
  const visit = visits.find(({ from, until }) => sentAt > from && acknowledgedAt < until)
  if (!visit) return 'it was away'
  const [after, before] = [sentAt - visit.from, visit.until - acknowledgedAt].map(Math.round)
  const how = visit.begun < visit.until ? 'it left' : 'the node was killed'
  return `sent ${after} ms after the log-in, acknowledged ${before} ms before ${how}`
}

function newestBefore({ asked }: Visit, due: readonly Sent[]): Map<string, Sent> {
  const before = due.filter(({ acknowledgedAt = Infinity }) => acknowledgedAt < asked)
  return new Map(before.map((event) => [event.topic, event]))
}

function isWithin(from: number, until: number, { sentAt, acknowledgedAt = Infinity }: Sent): boolean {
  return sentAt > from && acknowledgedAt < until
}

/** Events that a session of QoS 0 got, although they were published while the session was offline. */
function uninvited({ qos, record, visits }: Visited, sent: readonly Sent[]): string[] {
  if (qos > 0) return []
  const got = new Set(record.received.filter(({ isRetained }) => !isRetained).map(({ marker }) => marker))
  const away = visits.slice(1).map(({ asked }, index) => ({ from: visits[index]?.closed ?? 0, until: asked }))
  return sent
    .filter((event) => event.attempts === 1 && away.some(({ from, until }) => isWithin(from, until, event)))
    .filter(({ marker }) => got.has(marker))
    .map(({ marker }) => `${record.clientId} gets ${marker}`)
}

/** The client of a persistent session. It subscribes only once, in its first connection. */
function createVisitor(parts: {
  door: Door
  login: Issued
  qos: 0 | 1 | 2
  habit: 'stays' | 'comes and goes' | 'is often away'
  random: Random
}) {
  const { door, login, qos, habit, random } = parts
  const clientId = `${habit.replaceAll(' ', '-')}-qos-${qos}`
  const record: SessionRecord = { clientId, filters: [], endedAt: [], received: [] }
  const visits: Visit[] = []
  let client: Client | undefined
  let subscribedAt = Infinity

  return {
    qos,
    record,
    visits,
    get subscribedAt() {
      return subscribedAt
    },
    comeIn,
    leave: async () => client?.leave(),

    async run(isOver: () => boolean): Promise<void> {
      while (!isOver()) {
        await comeIn()
        const stay = habit === 'stays' ? Infinity : random.between(50, 1_500)
        for (const end = performance.now() + stay; client?.isOpen && performance.now() < end && !isOver(); ) {
          const due = performance.now() + 20
          await delay(20)
          noteDelay(due)
        }
        if (habit === 'stays' || isOver()) continue
        await goOut()
        await delay(habit === 'is often away' ? random.between(1_000, 2_500) : random.between(0, 300))
      }
    },
  }

  async function goOut(): Promise<void> {
    const visit = visits.at(-1)
    if (visit && client?.isOpen) {
      const asked = performance.now()
      await client.settled().catch(() => undefined)
      noteDelay(asked)
      visit.until = Math.min(visit.until, performance.now())
      visit.begun = visit.until - servedMs - visit.heldUpMs
    }
    if (random.happens(0.5)) client?.cut()
    else await client?.leave()
  }

  /** Something in the present visit was due at `due`, and happens only now. */
  function noteDelay(due: number): void {
    const visit = visits.at(-1)
    if (visit) visit.heldUpMs = Math.max(visit.heldUpMs, performance.now() - due)
  }

  /** Connects the client if it is not connected. Tries until it succeeds. */
  async function comeIn(): Promise<void> {
    while (!client?.isOpen) {
      try {
        const asked = performance.now()
        const connection = visits.length
        client = await enter(door, {
          login,
          clientId,
          clean: false,
          onMessage: ({ payload, retain, dup }) => {
            const marker = markerOf(payload)
            const flags = { isRetained: retain, isDuplicate: dup }
            record.received.push({ marker, at: performance.now(), ...flags, connection })
          },
        })
        const visit: Visit = { asked, from: performance.now(), ...still, heldUpMs: 0 }
        visits.push(visit)
        void client.closed.then(() => {
          visit.closed = performance.now()
          visit.until = Math.min(visit.until, visit.closed)
          visit.begun = Math.min(visit.begun, visit.until)
        })
        if (subscribedAt !== Infinity) continue
        await client.subscribe('radio/#', qos)
        // This filter overlaps the first, and must not change what arrives.
        await client.subscribe('radio/+/control', qos)
        subscribedAt = performance.now()
      } catch {
        client?.cut()
        await delay(50)
      }
    }
  }
}

/** Publishes one event after the other. Disconnects at random moments. */
async function publishOn(
  { publish, leave, livestreams, random }: ReturnType<typeof createPublisher> & { random: Random },
  isOver: () => boolean,
): Promise<void> {
  const [first] = livestreams
  if (!first) return
  while (!isOver()) {
    const livestream = random.oneOf([first, ...livestreams])
    await publish(livestream, random.oneOf(['control', 'track', 'track', 'data'] as const))
    if (random.happens(0.02)) {
      await leave()
      await delay(random.between(0, 300))
    }
  }
}
