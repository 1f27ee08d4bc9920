import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { patienceMs } from '../../patience.ts'
import { createRandom, type Random } from '../../random.ts'
import type { Issued } from '../../start-hub.ts'
import { comes } from '../../until.ts'
import { enter } from './client.ts'
import { type Backend, type ClusterNode, startCluster } from './cluster.ts'
import { type Fault, makeFaults, planFaults, type StoreFaults } from './faults.ts'
import { createHopper, type Hopper } from './hopper.ts'
import { missing, type Sent, sentAgain, trailOf, unwanted } from './judge.ts'
import { isBehind, wrongInStream } from './judge-streams.ts'
import { overlaps, wrongAtWebhook, wrongWorth } from './judge-webhooks.ts'
import { createPublisher, markerOf, type Publisher } from './publishers.ts'
import { readJournal } from './read-journal.ts'
import { createReader, type Reader, someReadings } from './readers.ts'
import { createRevocations } from './revocations.ts'
import {
  addWebhooks,
  pendingQueues,
  someLivestreams,
  startWebhookServer,
  twinOf,
  type Webhooks,
} from './webhooks.ts'

export interface Verdict {
  faults: readonly Fault[]
  /** What the hub promises, and the observations that contradict it. */
  findings: { claim: string; problems: string[] }[]
  /**
   * The steps of the event and the session that a finding names. Each step has its time: milliseconds since the test
   * began to make faults.
   */
  trails: string[]
  /** Figures of the run. */
  summary: string
}

/** The nodes have this time to recover from the last fault, milliseconds. */
const settleMs = 45_000
const hoppers = 12
const mortals = 4
const settled = 3
const revocable = 8
/** Credentials of `someReadings`. */
const readerLogins = 2

/**
 * Runs nodes under faults that follow from the seed, with publishers, webhooks, moving sessions and revocations.
 * The verdict depends only on what can be seen from outside the nodes.
 */
export async function check(
  t: Test,
  {
    seed,
    seconds,
    backend,
    settings = {},
    workers = [1, 1, 1],
    mayLose = false,
    isWanted = () => true,
  }: {
    seed: string
    seconds: number
    backend: Backend & { faults: StoreFaults }
    /** Additional environment variables of the nodes. */
    settings?: Record<string, string>
    /** The nodes, by the number of their workers. */
    workers?: readonly number[]
    /** The store may lose commits, and readers may be told so. */
    mayLose?: boolean
    /** Chooses the faults that happen. */
    isWanted?: (fault: Fault) => boolean
  },
): Promise<Verdict> {
  const random = (name: string) => createRandom(`${seed} ${name}`)
  const { receiver, env } = await startWebhookServer(t)
  const limits = { HUB_QUEUE_LIMIT: '100000', HUB_MAX_CONNECTIONS_PER_ADDRESS: '0' }
  const cluster = await startCluster(t, backend, { workers, env: { ...env, ...limits, ...settings } })
  const { a } = cluster
  const nodes = atLeastOne(cluster.nodes)
  const livestreams = atLeastOne(someLivestreams(12, 4))
  const webhooks = await addWebhooks(t, a, receiver, livestreams)
  const login = await a.subscriber('radio/#')
  const publishers = await addPublishers(a, { nodes, livestreams, random })
  const logins = await Promise.all(Array.from({ length: revocable }, () => a.subscriber('radio/#')))
  const revocations = createRevocations({ logins, nodes, random: random('revocations') })
  const readings = await someReadings(a, livestreams)
  for (const node of nodes) await node.knows(1 + 1 + publishers.logins + revocable + readerLogins)
  const sessions = Array.from({ length: hoppers }, (_, index) => {
    const isMortal = index < mortals
    const stays = index >= hoppers - settled
    const clientId = `${isMortal ? 'mortal' : stays ? 'settled' : 'hopper'}-${index}`
    const client = { clientId, login, isMortal, stays }
    return createHopper({ ...client, livestreams, nodes, random: random(clientId) })
  })
  const readers = readings.map((reading) =>
    createReader({ ...reading, nodes, random: random(`reader ${reading.name}`) }),
  )
  const { sent } = publishers
  t.teardown(() =>
    Promise.all([...sessions, ...readers, ...publishers.all, revocations].map((visitor) => visitor.leave())),
  )

  const hasReplica = backend.faults.failOver !== undefined
  const faults = planFaults(seed, seconds, { hasReplica, workers }).filter(isWanted)
  const began = performance.now()
  let isOver = false
  const running = Promise.all([
    ...publishers.all.map((publisher) => publisher.run(() => isOver)),
    ...sessions.map((session) => session.run(() => isOver)),
    ...readers.map((reader) => reader.run(() => isOver)),
    revocations.run(seconds, () => isOver),
    varyAnswers(webhooks, livestreams, random('receiver'), () => isOver),
  ])
  await Promise.all([makeFaults(faults, nodes, backend.faults), delay(seconds * 1000)])
  isOver = true
  webhooks.answerAtOnce()
  const areDone = await Promise.race([running.then(() => true), delay(settleMs, false, { ref: false })])

  const lost: string[] = []
  const look = () => sessions.flatMap(({ record }) => missing(record, sent))
  for (const round of nodes.keys()) {
    await Promise.all(
      [...sessions, ...readers].map(({ visit }, index) =>
        visit(nodes[(index + round) % nodes.length] ?? nodes[0]),
      ),
    )
    if (areDone) await probe(publishers.all)
    const wait = lost.length > 0 ? settleMs / 9 : settleMs
    await comes(() => look().length === 0, wait)
    lost.push(...look().filter((line) => !lost.includes(line)))
  }
  const stuck = await stuckQueues(nodes)
  const journal = await readJournal(t, a, livestreams)
  const ofStreams = () => readers.flatMap(({ record }) => (isBehind(record, journal) ? [record.name] : []))
  await comes(() => ofStreams().length === 0, settleMs)
  const findings = [
    {
      claim: 'no node ended by itself',
      problems: nodes.flatMap((node) => {
        const ending = node.ending()
        return ending === undefined ? [] : [`node ${node.index}: ${ending}`]
      }),
    },
    {
      claim: 'every event was acknowledged in the end',
      problems: areDone ? [] : unacknowledged(sent),
    },
    { claim: 'no acknowledged event and no granted filter is lost', problems: lost },
    {
      claim: 'nothing comes through a filter that was removed',
      problems: sessions.flatMap(({ record }) => unwanted(record, sent)),
    },
    { claim: 'a session ends once, and only then', problems: sessions.flatMap(({ wrong }) => wrong) },
    { claim: 'every stream gets to the end of the journal', problems: ofStreams() },
    {
      claim: 'a stream has what the journal has: nothing missing, nothing twice, nothing missed',
      problems: readers.flatMap(({ record }) => wrongInStream(record, journal, mayLose)),
    },
    { claim: 'no queue of a webhook stands still', problems: stuck },
    { claim: 'webhooks get every event, in order', problems: webhookProblems(webhooks, livestreams, sent) },
    {
      claim: 'webhooks for all livestreams get every event, each livestream in order',
      problems: (['list', 'lanes'] as const).flatMap((name) =>
        livestreams.flatMap(({ id }) => wrongAtWebhook(webhooks.attempts, name, id, sent)),
      ),
    },
    {
      claim: 'no two pushes of one order are under way at once',
      problems: [
        ...overlaps(webhooks.attempts, ({ webhook }) => webhook !== 'lanes' && webhook !== 'worth'),
        ...livestreams.flatMap(({ id }) =>
          overlaps(
            webhooks.attempts,
            ({ webhook, livestream }) => (webhook === 'lanes' || webhook === 'worth') && livestream === id,
          ),
        ),
      ],
    },
    {
      claim: 'with maxAge, what plays now comes, in order, and nothing that was over long ago',
      problems: livestreams.flatMap(({ id }) => wrongWorth(webhooks.attempts, 'worth', id, sent)),
    },
    { claim: 'every node retains the newest values', problems: await retainedProblems(nodes, login, sent) },
    { claim: 'what was revoked gets in nowhere', problems: await revocations.admitted() },
    {
      claim: 'nothing is sent again in a connection that acknowledged it',
      problems: sessions.flatMap(({ record }) => sentAgain(record, sent)),
    },
  ]
  const deliveries = sessions.reduce((sum, { record }) => sum + record.received.length, 0)
  const summary = [
    `${sent.length} events, ${deliveries} deliveries to ${sessions.length} sessions`,
    `${sessions.reduce((sum, { record }) => sum + record.filters.length, 0)} changes of filters`,
    `${webhooks.attempts.length} attempts at webhooks, ${revocations.revoked.length} revocations`,
    ofReaders(readers),
    `${faults.length} faults, ${startedAgain(nodes)} nodes that started again by themselves`,
  ].join(', ')
  const problems = findings.flatMap(({ problems }) => problems)
  const trails = [
    `the first fault could happen at ${Math.round(began)}`,
    ...trailsOf(problems, sessions, sent, began),
  ]
  return { faults, findings, summary, trails }
}

function ofReaders(readers: readonly Reader[]): string {
  const connections = readers.flatMap(({ record }) => record.connections)
  const ready = connections.filter(({ readyAt }) => readyAt !== undefined)
  const events = connections.reduce((sum, { events }) => sum + events.length, 0)
  const missed = connections.filter(({ hasMissed }) => hasMissed).length
  return `${ready.length} of ${connections.length} streams ready, with ${events} events, ${missed} missed`
}

/** The steps of the session and the event that a problem names, for the first 20 problems. */
function trailsOf(
  problems: readonly string[],
  sessions: readonly Hopper[],
  sent: readonly Sent[],
  began: number,
): string[] {
  return problems.slice(0, 20).flatMap((problem) => {
    const words = problem.split(' ')
    const session = sessions.find(({ record }) => record.clientId === words[0])
    const event = sent.find(({ marker }) => words.includes(marker))
    if (!session || !event) return []
    const steps = trailOf(session.record, session.steps, event)
    return [problem, ...steps.map(({ at, what }) => `  ${Math.round(at - began)} ${what}`)]
  })
}

/** Adds two publishers for each institution. The two share no livestream. */
async function addPublishers(
  node: ClusterNode,
  parts: {
    nodes: readonly [ClusterNode, ...ClusterNode[]]
    livestreams: readonly Livestream[]
    random: (name: string) => Random
  },
): Promise<{ all: Publisher[]; sent: Sent[]; logins: number }> {
  const { nodes, livestreams, random } = parts
  const sent: Sent[] = []
  const all: Publisher[] = []
  const institutions = [...new Set(livestreams.map(({ institution }) => institution.id))]
  for (const [index, institution] of institutions.entries()) {
    const login = await node.publisher([institution])
    const own = livestreams.filter((livestream) => livestream.institution.id === institution)
    for (const qos of [1, 2] as const) {
      const name = `studio-${index}-qos-${qos}`
      const half = atLeastOne(own.filter((_, place) => place % 2 === qos - 1))
      all.push(createPublisher({ name, qos, login, livestreams: half, nodes, random: random(name), sent }))
    }
  }
  return { all, sent, logins: institutions.length }
}

/** Publishes one event of each kind for each livestream. */
async function probe(publishers: readonly Publisher[]): Promise<void> {
  await Promise.all(
    publishers.map(async ({ livestreams, publish }) => {
      for (const livestream of livestreams) {
        for (const kind of ['control', 'track', 'data'] as const) await publish(livestream, kind)
      }
    }),
  )
}

/** Repeatedly makes a random webhook slow for a moment, or lets it answer 503. */
async function varyAnswers(
  webhooks: Webhooks,
  livestreams: readonly [Livestream, ...Livestream[]],
  random: Random,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const { id } = random.oneOf(livestreams)
    const webhook = random.oneOf([id, twinOf(id)] as const)
    const isOut = random.happens(0.2)
    webhooks.answer(webhook, { delayMs: random.between(0, 600), status: isOut ? 503 : 201 })
    await delay(random.between(300, 1_500))
    webhooks.answer(webhook, { delayMs: 0, status: 201 })
  }
}

async function stuckQueues(nodes: readonly ClusterNode[]): Promise<string[]> {
  let pending: string[] = []
  await comes(async () => {
    pending = (await Promise.all(nodes.map(pendingQueues))).flat()
    return pending.length === 0
  }, settleMs)
  return pending
}

function webhookProblems(
  webhooks: Webhooks,
  livestreams: readonly Livestream[],
  sent: readonly Sent[],
): string[] {
  return livestreams.flatMap(({ id }) =>
    [id, twinOf(id)].flatMap((webhook) => wrongAtWebhook(webhooks.attempts, webhook, id, sent)),
  )
}

/** Topics whose newest event is not the retained value that a new client gets. */
async function retainedProblems(
  nodes: readonly ClusterNode[],
  login: Issued,
  sent: readonly Sent[],
): Promise<string[]> {
  const newest = new Map(sent.map(({ topic, marker }) => [topic, marker]))
  const shown = await Promise.all(
    nodes.map(async (node) => {
      const values = new Map<string, string>()
      const client = await enter(node, {
        login,
        clientId: `stranger-${node.index}`,
        clean: true,
        timeoutMs: patienceMs,
        onMessage: ({ topic, payload, retain }) => retain && values.set(topic, payload.toString()),
      })
      await client.subscribe('radio/#')
      await comes(() => [...newest.keys()].every((topic) => values.has(topic)), patienceMs)
      await client.leave()
      return { node, values }
    }),
  )
  return shown.flatMap(({ node, values }) =>
    [...newest].flatMap(([topic, marker]) => {
      const value = values.get(topic)
      const found = value === undefined ? 'nothing' : markerOf(value)
      const isSame = value === shown[0]?.values.get(topic)
      return found === marker && isSame
        ? []
        : [`node ${node.index}: ${found} in place of ${marker}, ${topic}`]
    }),
  )
}

function unacknowledged(sent: readonly Sent[]): string[] {
  const open = sent.filter(({ acknowledgedAt }) => acknowledgedAt === undefined)
  return ['publishers, sessions or revocations do not come to an end', ...open.map(({ marker }) => marker)]
}

function startedAgain(nodes: readonly ClusterNode[]): number {
  const word = 'the node lost track of the others, and starts again'
  return nodes.flatMap((node) => node.messages().filter((message) => message.startsWith(word))).length
}

function atLeastOne<T>(all: readonly T[]): readonly [T, ...T[]] {
  const [first, ...rest] = all
  if (first === undefined) throw new Error('nothing there')
  return [first, ...rest]
}
