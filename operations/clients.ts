import type { TraceLine } from '../broker/packet-trace.ts'
import {
  boolean,
  instant,
  instantOrNull,
  integer,
  one,
  orNull,
  string,
  stringOrNull,
  texts,
} from '../event/answer-fields.ts'
import { checkTopicFilter, checkTopicName } from '../event/topic.ts'
import { Type } from '../event/type.ts'
import { clientId, limit, livestream, text, topic, username } from './arguments.ts'
import { assertCarriedOut, refusal, unknownName } from './errors.ts'
import { anId } from './examples.ts'
import { choose } from './lookups/choose.ts'
import { livestreamsNamed } from './lookups/livestreams.ts'
import type { NodeParts } from './node-parts.ts'
import { changes, loses, reads } from './operation.ts'

const client = Type.Object({
  clientId: string,
  node: string,
  username: string,
  address: string,
  connectedAt: instant,
  clean: boolean,
  keepAlive: Type.Integer({ description: 'seconds' }),
  subscriptions: texts,
  inFlight: integer,
  pendingBytes: integer,
})

const subscribers = Type.Object({
  livestreamId: string,
  title: stringOrNull,
  subscribers: integer,
  ofAll: Type.Integer({ description: 'those that read all livestreams' }),
})

const session = Type.Object({
  clientId: string,
  username: string,
  persistent: boolean,
  connected: boolean,
  node: stringOrNull,
  createdAt: instant,
  disconnectedAt: instantOrNull,
  expiresAt: instantOrNull,
  subscriptions: texts,
  queued: orNull(integer, 'null in the list if the client is away: sessions.show counts the messages'),
  inFlight: orNull(integer),
  dropped: integer,
})

const retained = Type.Object({
  topic: string,
  eventTime: instant,
  expires: instantOrNull,
  bytes: integer,
  payload: string,
})

const optionalInteger = Type.Optional(integer)
const optionalFlag = Type.Optional(boolean)
const optionalString = Type.Optional(string)

export const traceLine = Type.Object({
  at: instant,
  node: string,
  what: one<TraceLine['what']>('trace', 'open', 'in', 'out', 'note', 'end', 'left out', 'silent', 'over'),
  connection: Type.Optional(Type.Integer({ description: 'counts what the node has traced' })),
  packet: optionalString,
  bytes: Type.Optional(Type.Integer({ description: 'of the whole packet' })),
  packetId: optionalInteger,
  topic: optionalString,
  qos: optionalInteger,
  retain: optionalFlag,
  dup: optionalFlag,
  payloadBytes: optionalInteger,
  returnCodes: Type.Optional(Type.Array(integer)),
  filters: Type.Optional(texts),
  text: optionalString,
  leftOut: Type.Optional(orNull(integer)),
})

/** Longest trace, seconds: followed line by line, and as one answer. */
const longest = { followed: 3_600, whole: 20 }
const usualSeconds = { followed: 300, whole: 10 }
/** Maximum number of lines in one answer. */
const maxWhole = 1_000

const sessionColumns = [
  'clientId',
  'username',
  'connected',
  'node',
  'subscriptions',
  'queued',
  'expiresAt',
] as const

/** The commands about connected clients, their sessions, and what new subscribers get. */
export const clientOperations = {
  'clients.list': reads('who is connected', {
    args: { username: Type.Optional(username), node: Type.Optional(text('the name of a node')), limit },
    console: {
      view: 'clients',
      title: 'Connected clients',
      empty: 'Nobody is connected.',
      columns: [
        'clientId',
        'username',
        'address',
        ['Since', 'connectedAt'],
        ['Reads', 'subscriptions'],
        'inFlight',
        ['Unsent', 'pendingBytes'],
      ],
    },
    hubctl: { columns: ['clientId', 'node', 'username', 'address', 'connectedAt', 'subscriptions'] },
    result: Type.Array(client),
    run: async ({ broker }, { limit, ...wanted }) => choose(await broker.clients(), wanted, limit),
  }),
  'clients.count': reads(
    'how many connected clients subscribe to a livestream, or to each; those that read all livestreams apart',
    {
      args: { livestream: Type.Optional(livestream), limit },
      example: { livestream: anId },
      hubctl: {
        about: 'Most first. Clients are not listeners: an app server counts once for all of its listeners.',
        columns: [
          ['LIVESTREAM', 'title'],
          ['ID', 'livestreamId'],
          'subscribers',
          ['OF ALL LIVESTREAMS', 'ofAll'],
        ],
        nothing: 'No livestreams.',
      },
      result: Type.Array(subscribers),
      async run(node, { livestream: name, limit }) {
        const counted = await livestreamsToCount(node, name)
        const { ofAll, byLivestream } = await node.broker.subscribers(counted.map(({ id }) => id))
        const rows = counted.map(({ id, title }) => {
          return { livestreamId: id, title, subscribers: byLivestream[id] ?? 0, ofAll }
        })
        return rows.sort((a, b) => b.subscribers - a.subscribers).slice(0, limit)
      },
    },
  ),
  'clients.disconnect': changes('close a connection; the client may connect again', {
    args: { clientId },
    example: { clientId: 'player-1' },
    console: { view: 'clients', of: 'clients.list', by: 'clientId', title: 'Disconnect' },
    hubctl: { done: 'Disconnected {clientId}.' },
    result: Type.Object({ clientId: string, disconnected: boolean }),
    async run({ broker }, { clientId }, { note }) {
      if (!(await broker.isConnected(clientId))) throw unknownName('connected client', clientId)
      await note(clientId, null)
      assertCarriedOut(await broker.disconnect(clientId), 'connected client', clientId)
      return { clientId, disconnected: true }
    },
  }),
  trace: changes('packets of one client as they come and go, on whichever node; it goes into the audit log', {
    args: {
      clientId,
      for: Type.Optional(
        Type.Number({
          exclusiveMinimum: 0,
          maximum: longest.followed,
          description: `a number of seconds, at most ${longest.followed}`,
        }),
      ),
      whole: Type.Optional(Type.Boolean({ description: 'true: all lines in one answer' })),
    },
    example: { clientId: 'player-1', for: usualSeconds.whole },
    singleAnswerArgs: { whole: true },
    console: {
      view: 'clients',
      of: 'clients.list',
      by: 'clientId',
      title: 'Trace packets',
      fields: { for: { label: 'For how many seconds', usual: String(usualSeconds.whole) } },
      patienceSeconds: 60,
    },
    hubctl: {
      typed: {
        clientId: '<client>',
        for: ['--for <duration>', 'until then: 30s, 5m (without it), 1h at most'],
      },
      columns: ['at', 'node', 'connection', 'what', 'packet', 'packetId', 'topic', 'qos', 'bytes', 'text'],
      about: '[What the lines say](operators.md#packets-of-one-client).',
    },
    check: ({ for: seconds = 0, whole }) =>
      whole && seconds > longest.whole
        ? `for must be at most ${longest.whole} seconds where the answer comes as a whole, as over HTTPS`
        : undefined,
    result: Type.Array(traceLine),
    async run(
      { broker },
      { clientId, whole, for: seconds = usualSeconds[whole ? 'whole' : 'followed'] },
      { note },
    ) {
      await note(clientId, { for: seconds })
      const lines = broker.tracePackets(clientId, seconds * 1000)
      if (!lines) throw refusal('there are too many traces already: wait for one to end')
      return whole ? wholeOf(lines) : lines
    },
  }),
  'sessions.list': reads('sessions, connected or waiting for their client', {
    args: {
      username: Type.Optional(username),
      node: Type.Optional(text('the name of a node')),
      connected: Type.Optional(Type.Boolean({ description: 'true or false' })),
      limit,
    },
    console: {
      view: 'clients',
      title: 'Sessions',
      empty: 'No session waits for its client.',
      first: { name: 'Client is away', where: { connected: [false] } },
      columns: [
        'clientId',
        'connected',
        'username',
        ['Reads', 'subscriptions'],
        'queued',
        'dropped',
        ['Ends', 'expiresAt'],
      ],
    },
    hubctl: { about: '`QUEUED` is known of connected ones only.', columns: sessionColumns },
    result: Type.Array(session),
    run: async ({ broker }, { limit, ...wanted }) => choose(await broker.sessionList(), wanted, limit),
  }),
  'sessions.show': reads('one session, with what its client would get if it came back now', {
    args: { clientId },
    example: { clientId: 'player-1' },
    console: { view: 'clients', title: 'Session', of: 'sessions.list', by: 'clientId' },
    hubctl: { columns: sessionColumns },
    result: session,
    async run({ broker }, { clientId }) {
      const found = await broker.session(clientId)
      if (found === undefined) throw unknownName('session', clientId)
      return found
    },
  }),
  'sessions.drop': loses('end a session with everything queued for it, and free its client id', {
    args: { clientId },
    example: { clientId: 'player-1' },
    console: {
      view: 'clients',
      title: 'Drop',
      of: 'sessions.list',
      by: 'clientId',
      loss: [
        'The session of {clientId} is lost with its subscriptions and everything that it has not got yet.',
        '{queued|message} wait for it.',
        'Its client is disconnected.{connected?}',
      ],
    },
    hubctl: { done: 'Dropped the session of {clientId}.' },
    result: Type.Object({ clientId: string, dropped: boolean }),
    async run({ broker }, { clientId }, { note }) {
      if (!(await broker.hasSession(clientId))) throw unknownName('session', clientId)
      await note(clientId, null)
      assertCarriedOut(await broker.dropSession(clientId), 'session', clientId)
      return { clientId, dropped: true }
    },
  }),
  'retained.list': reads('retained messages', {
    args: { filter: Type.Optional(text('a topic filter; without it, all', 65_535)), limit },
    hubctl: {
      typed: { filter: '[filter]' },
      columns: ['topic', 'eventTime', 'expires', 'bytes'],
      nothing: 'No retained messages.',
    },
    check({ filter }) {
      const malformed = filter === undefined ? undefined : checkTopicFilter(filter)
      return malformed && `"${filter}" is not a topic filter: ${malformed}`
    },
    result: Type.Array(retained),
    run: async ({ broker }, { filter = '#', limit }) => (await broker.retainedList(filter)).slice(0, limit),
  }),
  'retained.clear': loses('forget what is retained on a topic', {
    args: { topic },
    example: { topic: `radio/${anId}/control` },
    console: {
      view: 'livestreams',
      title: 'Clear',
      by: 'topic',
      loss: ['What is retained on {topic} is lost: new subscribers get nothing until the next event.'],
    },
    hubctl: { done: 'Cleared {topic}.' },
    check({ topic }) {
      const malformed = checkTopicName(topic)
      return malformed && `"${topic}" is not a topic: ${malformed}`
    },
    result: Type.Object({ topic: string, cleared: boolean }),
    async run({ broker }, { topic }, { note }) {
      const unknown = unknownName('retained message on', topic)
      if (broker.retained.current(topic) === undefined) throw unknown
      await note(topic, null)
      if (!(await broker.retained.clear(topic))) throw unknown
      return { topic, cleared: true }
    },
  }),
}

/** Waits for the end of a trace. Keeps its first lines, and the last. */
async function wholeOf(lines: AsyncIterable<TraceLine>): Promise<TraceLine[]> {
  const kept: TraceLine[] = []
  let leftOut = 0
  for await (const line of lines) {
    const isLast = line.what === 'over'
    if (isLast && leftOut > 0) kept.push({ at: line.at, node: line.node, what: 'left out', leftOut })
    if (isLast || kept.length < maxWhole) kept.push(line)
    else leftOut += line.leftOut ?? 1
  }
  return kept
}

/** The livestreams with this name, or all of the feed. */
async function livestreamsToCount(node: NodeParts, name: string | undefined) {
  const feed = node.feed.current()
  if (name !== undefined) {
    const named = await livestreamsNamed(node, name)
    if (named.length === 0) throw unknownName('livestream', name)
    return named.map(({ id }) => ({ id, title: feed?.byId.get(id)?.title ?? null }))
  }
  const all: { id: string; title: string }[] = []
  for await (const { id, title } of feed?.all() ?? []) all.push({ id, title })
  return all
}
