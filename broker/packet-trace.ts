import { setTimeout as delay } from 'node:timers/promises'
import { inTimeOr } from '../store/deadline.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import type { Clients } from './connection/client.ts'
import type { MqttConnection } from './connection/connection.ts'
import { clientIdIn, type DescribedPacket, describeFrame, framesIn } from './connection/describe-packet.ts'
import type { Frame } from './connection/frames.ts'
import { packetType } from './connection/protocol.ts'

export type PacketTrace = ReturnType<typeof createPacketTrace>

/** A line of a packet trace. `connection` counts the connections that a node has watched. */
export interface TraceLine extends DescribedPacket {
  at: string
  node: string
  what: 'trace' | 'open' | 'in' | 'out' | 'note' | 'end' | 'left out' | 'silent' | 'over'
  connection?: number
  text?: string
  /** How many lines are missing here. Null: the node has forgotten. */
  leftOut?: number | null
}

/** Pause between two questions to the nodes, milliseconds. */
const roundMs = 500
/** Longest wait for the lines of a node, milliseconds. */
const answerMs = 2_000
/** Maximum number of packets that a node keeps for a trace between two questions. */
const maxPackets = 200
/** As many more lines may say that connections begin and end: a flood of packets must not hide that. */
const maxLines = 2 * maxPackets
/** Maximum number of traces at the same time. */
const maxTraces = 20
/** A node ends a trace that it was not asked about for this time, milliseconds: the reader, or its node, is gone. */
const unaskedMs = 60_000

/** Asks a node for the lines of a trace. `got`: the number of the last answer that arrived. */
interface Asked {
  id: string
  clientId: string
  got: number
  isLast: boolean
}

/** Without lines, the node has too many traces. */
interface Answer {
  number: number
  lines?: TraceLine[]
}

/** What a node keeps for one trace. */
interface Tap {
  clientId: string
  /** The lines of the last answer: they go out again if the answer was lost. */
  answered: TraceLine[]
  number: number
  waiting: TraceLine[]
  expiry: NodeJS.Timeout
}

/**
 * Shows operators the packets of one client, on whichever node it is. Each node keeps a bounded number of lines, and
 * hands them over when it is asked. A slow reader asks rarely, so it misses lines, and gets their number.
 */
export function createPacketTrace(parts: {
  clients: Clients
  nodes: Nodes
  calls: Calls
  clock: () => number
}) {
  const { clients, nodes, calls, clock } = parts
  /** By the id of the trace. */
  const taps = new Map<string, Tap>()
  /** The numbers of the connections that are watched. */
  const watched = new WeakMap<MqttConnection, number>()
  /** The traces that readers of this node follow. */
  const followed = new Set<AbortController>()
  let isClosing = false
  let lastConnection = 0
  let lastTrace = 0
  calls.serve('packets', (asked) => answer(asked as Asked))

  return {
    /** A connection has sent its first packet, which may be wrong. */
    connecting(connection: MqttConnection, frame: Frame): void {
      if (taps.size === 0) return
      const clientId = clientIdIn(frame)
      if (clientId === undefined || tapsOf(clientId).length === 0) return
      const number = watch(connection, clientId)
      show(clientId, number, 'open', () => ({ text: `from ${connection.remoteAddress}` }), true)
    },

    /** The lines until the time is over, or the reader leaves. Undefined: there are too many traces. */
    begin(clientId: string, forMs: number): AsyncIterableIterator<TraceLine> | undefined {
      const id = `${nodes.self} ${++lastTrace}`
      if (!tap(id, clientId)) return undefined
      let hasBegun = false
      const leaving = new AbortController()
      followed.add(leaving)
      if (isClosing) leaving.abort()
      const following = follow({ id, clientId, end: performance.now() + forMs, leaving })
      const lines: AsyncIterableIterator<TraceLine> = {
        [Symbol.asyncIterator]: () => lines,
        next() {
          hasBegun = true
          return following.next()
        },
        return() {
          // Without a first line, `following` has not begun, and ends without its last look, which ends the taps.
          if (!hasBegun) end(id)
          // A generator alone would go on until its next line.
          followed.delete(leaving)
          leaving.abort()
          return following.return(undefined)
        },
      }
      return lines
    },

    /** Ends all traces of this node, because it is about to close. */
    endAll(): void {
      isClosing = true
      for (const leaving of followed) leaving.abort()
    },
  }

  async function* follow(trace: {
    id: string
    clientId: string
    /** By `performance.now()`. */
    end: number
    leaving: AbortController
  }): AsyncGenerator<TraceLine, undefined> {
    const { id, clientId, end, leaving } = trace
    const got = new Map<string, number>()
    const silent = new Set<string>()
    /** The names of the nodes that were asked, by their ids. */
    const names = new Map<string, string>()
    const until = new Date(clock() + end - performance.now()).toISOString()
    let isLast = false
    try {
      const lines = await round()
      const isThere = lines.some(({ what }) => what === 'open')
      const text = isThere
        ? ''
        : '; the client is not connected: what it sends from its next CONNECT on is shown'
      yield line('trace', { text: `until ${until}${text}` })
      yield* lines
      for (let restMs = end - performance.now(); restMs > 0; restMs = end - performance.now()) {
        await delay(Math.min(roundMs, restMs), undefined, { signal: leaving.signal }).catch(() => undefined)
        if (leaving.signal.aborted) break
        yield* await round()
      }
      isLast = true
      yield* await round()
      if (!leaving.signal.aborted) yield line('over')
      return undefined
    } finally {
      followed.delete(leaving)
      if (!isLast) {
        isLast = true
        await round()
      }
    }

    /** Asks all nodes. Returns their new lines in the order of time. */
    async function round(): Promise<TraceLine[]> {
      const living = nodes.living()
      const ended = [...names].filter(([node]) => !living.includes(node))
      for (const [node] of ended) names.delete(node)
      for (const node of living) names.set(node, nodes.nameOf(node))
      const answers = await Promise.all(living.map(async (node) => [node, await ask(node)] as const))
      const lines = answers.flatMap(([node, reply]) => {
        const heard = [...noticeOf(node, reply), ...(reply?.lines ?? [])]
        if (reply) got.set(node, reply.number)
        return heard
      })
      for (const [, name] of ended) {
        lines.push(line('silent', { text: 'it has ended: its last packets may be missing' }, name))
      }
      return lines.sort((a, b) => Number(a.at > b.at) - Number(a.at < b.at))
    }

    /** Undefined: the node does not answer, or is of a release without traces. */
    async function ask(node: string): Promise<Answer | undefined> {
      const asked: Asked = { id, clientId, got: got.get(node) ?? 0, isLast }
      const answered = calls.ask(node, 'packets', asked).catch(() => undefined)
      // Without its store, a node would wait for longer, and show nothing of its own meanwhile.
      const reply = await inTimeOr(answered, answerMs, undefined)
      return (reply ?? undefined) as Answer | undefined
    }

    /** Whether a node has become silent, answers again, or has forgotten the trace. */
    function noticeOf(node: string, reply: Answer | undefined): TraceLine[] {
      const name = nodes.nameOf(node)
      const isSilent = reply?.lines === undefined
      if (isSilent !== silent.has(node)) {
        if (isSilent) silent.add(node)
        else silent.delete(node)
        const why = reply ? `it has ${maxTraces} traces already` : 'it does not answer'
        return [
          line('silent', { text: isSilent ? `${why}: its packets are missing` : 'it answers again' }, name),
        ]
      }
      // It has forgotten the trace, because nobody had asked for too long.
      return reply?.number === 0 ? [line('left out', { leftOut: null }, name)] : []
    }
  }

  function answer({ id, clientId, got, isLast }: Asked): Answer {
    const kept = taps.get(id) ?? tap(id, clientId)
    if (!kept) return { number: 0 }
    if (got === kept.number) {
      kept.number++
      kept.answered = kept.waiting
      kept.waiting = []
    }
    if (isLast) end(id)
    else kept.expiry.refresh()
    return { number: kept.number, lines: kept.answered }
  }

  function tap(id: string, clientId: string): Tap | undefined {
    if (taps.size >= maxTraces) return undefined
    const expiry = setTimeout(() => end(id), unaskedMs).unref()
    const made: Tap = { clientId, answered: [], number: 0, waiting: [], expiry }
    taps.set(id, made)
    for (const connection of connectionsOf(clientId)) {
      const { remoteAddress, connectedAt } = connection
      const text = `from ${remoteAddress}, connected since ${new Date(connectedAt).toISOString()}`
      made.waiting.push({ ...line('open', { text }), connection: watch(connection, clientId) })
    }
    return made
  }

  function end(id: string): void {
    const gone = taps.get(id)
    if (!gone) return
    clearTimeout(gone.expiry)
    taps.delete(id)
    if (tapsOf(gone.clientId).length > 0) return
    for (const connection of connectionsOf(gone.clientId)) {
      connection.watch(undefined)
      watched.delete(connection)
    }
  }

  /** Returns the number of the connection. */
  function watch(connection: MqttConnection, clientId: string): number {
    const known = watched.get(connection)
    if (known !== undefined) return known
    const number = ++lastConnection
    watched.set(connection, number)
    let isOver = false
    const packet = (what: 'in' | 'out', frame: Frame) =>
      show(clientId, number, what, () => describeFrame(frame), isOfConnection(frame))
    connection.watch({
      received: (frame) => packet('in', frame),
      sent(bytes) {
        for (const frame of framesIn(bytes)) packet('out', frame)
      },
      note: (text) => show(clientId, number, 'note', () => ({ text }), true),
      ended(text) {
        if (!isOver) show(clientId, number, 'end', () => ({ text }), true)
        isOver = true
      },
    })
    return number
  }

  /** Adds a line to the traces of a client that have room for it. A flood must cost little: `about` is asked only then. */
  function show(
    clientId: string,
    connection: number,
    what: TraceLine['what'],
    about: () => Partial<TraceLine>,
    isVital: boolean,
  ): void {
    let made: TraceLine | undefined
    for (const { waiting } of tapsOf(clientId)) {
      const last = waiting.at(-1)
      if (waiting.length < (isVital ? maxLines : maxPackets)) {
        made ??= { ...line(what, about()), connection }
        waiting.push(made)
      } else if (last?.leftOut) last.leftOut++
      else waiting.push(line('left out', { leftOut: 1 }))
    }
  }

  function tapsOf(clientId: string): Tap[] {
    return [...taps.values()].filter((tap) => tap.clientId === clientId)
  }

  function connectionsOf(clientId: string): MqttConnection[] {
    return [...clients.open].flatMap(({ connection, session }) =>
      (session?.clientId ?? connection.request?.clientId) === clientId ? [connection] : [],
    )
  }

  function line(what: TraceLine['what'], about: Partial<TraceLine> = {}, node = nodes.name): TraceLine {
    return { at: new Date(clock()).toISOString(), node, what, ...about }
  }
}

/** Packets that begin and end a connection. */
function isOfConnection({ type }: Frame): boolean {
  return type === packetType.connect || type === packetType.connack || type === packetType.disconnect
}
