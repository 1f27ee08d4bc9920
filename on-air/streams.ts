import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Entry } from '../journal/entry.ts'
import type { Journal } from '../journal/journal.ts'
import { isHistory } from '../journal/keeping.ts'
import type { Returnable } from '../journal/returnable.ts'
import { createPacing } from '../listener/pacing.ts'
import type { SharedCounts } from '../listener/shared-counts.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { comment, eventOf, notice, retryAfter } from './event-stream.ts'
import { type Following, follow } from './follow.ts'
import type { Livestreams } from './livestreams.ts'
import type { Moment, Parts } from './parts.ts'
import type { State } from './state.ts'
import type { View } from './view.ts'

export type Streams = ReturnType<typeof createStreams>

/** What a reader asks for. */
export interface StreamRequest {
  view: View
  /** Ids of livestreams. Undefined: all that the view shows. */
  livestreams: readonly string[] | undefined
  delayMs: number
  /** The position after which the reader goes on. NaN: it named one that cannot be read. */
  after: number | undefined
  /** A reader that was away for longer than this misses what was before, milliseconds. */
  mostBackMs: number
  /** Whose right to read it is. Undefined: that of all. */
  holder: string | undefined
  /** When that right ends, milliseconds since the epoch. */
  expiresAt: number | undefined
  /** Whether the right to read is still there. */
  isStillUser(): Promise<boolean>
}

/** The connection of a reader. It never waits for the reader. */
interface ReaderConnection {
  /** False: too much waits already, and the connection ends. */
  write(bytes: Buffer): boolean
  /** Resolves when little waits, or the connection has ended. */
  paced(): Promise<void>
  end(): void
}

interface Stream extends StreamRequest {
  client: ReaderConnection
  /** The reader has what was accepted up to this position. */
  upTo: number
  /** When the last bytes were written, by `performance.now()`. */
  writtenAt: number
  isOver: boolean
}

interface Readers {
  /** Readers of some livestreams, by livestream. */
  ofLivestream: Map<string, Set<Stream>>
  /** Readers of all livestreams. */
  ofAll: Set<Stream>
}

/** The readers with the same delay follow the journal together. */
interface DelayLine extends Readers {
  following: Following
}

/** So many readers are written to in one turn of the event loop. */
const perTurn = 64
/** What is sent to a reader that begins is made in pieces of this time, milliseconds. So many are made in one turn. */
const pieceMs = 1
const piecesPerTurn = 4
/** Events that are sent to a reader that begins are written in pieces of so many bytes. */
const writeBytes = 16 * 1024
/** So many livestreams or events are one piece. */
const fewItems = 500
/** A quiet connection gets a comment after this time, milliseconds. */
const quietMs = 15_000
const tickMs = 1_000
/** When a client comes back, milliseconds. At random: after a restart not all at once. */
const soonest = 1_000
const latest = 5_000

/**
 * Streams of events (open.md §4). A reader gets the state, or what it missed, and then every event in the order of the
 * journal. Readers keep no place: they name the position of the last event when they come back.
 */
export function createStreams(parts: {
  journal: Journal
  returnable: Pick<Returnable, 'since'>
  /** The last position that was accepted at least so many milliseconds ago. */
  positionBefore: (ms: number) => Promise<number>
  parts: Parts
  state: State
  livestreams: Livestreams
  /** Resolves when this node knows all earlier commits of the other nodes. */
  catchUp: () => Promise<void>
  maxStreams: number
  /** The streams of other workers count, too. */
  shared: SharedCounts
  /** What this node could send may be old. */
  isCutOff: () => boolean
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { journal, returnable, positionBefore, state, livestreams } = parts
  const { catchUp, maxStreams, shared, isCutOff, clock, log, metrics } = parts
  const streams = new Set<Stream>()
  const lines = new Map<number, Promise<DelayLine>>()
  /** Streams by their delay. */
  const counts = new Map<number, number>()
  const ticks = setInterval(tick, tickMs).unref()
  /** Thousands may begin at once, and an event must not wait for them. */
  const pieces = createPacing(piecesPerTurn)
  const choices = createPacing(1)
  let isClosed = false

  return {
    /** Whether one more stream may begin. */
    hasRoom: (): boolean =>
      !isClosed && !isCutOff() && streams.size + shared.ofOthers('streams') < maxStreams,

    /** Serves a reader until its connection ends. The returned function says how it has ended. */
    open(client: ReaderConnection, wanted: StreamRequest): (how: 'closed' | 'slow') => void {
      const stream: Stream = { ...wanted, client, upTo: 0, writtenAt: performance.now(), isOver: false }
      streams.add(stream)
      shared.add('streams', 1)
      counts.set(stream.delayMs, (counts.get(stream.delayMs) ?? 0) + 1)
      metrics.streams.set(streams.size)
      write(stream, retryAfter(soonest + Math.floor(Math.random() * (latest - soonest))))
      void begin(stream, wanted.after)
      // The right may have ended while the request was on its way here.
      void checkRight(stream)
      return (how) => leave(stream, how)
    },

    /** Ends the streams of a user or credential that may not read any more. */
    checkRights(holder: string): void {
      for (const stream of streams) if (stream.holder === holder) void checkRight(stream)
    },

    /** Ends all streams that there are. Their readers come back, to another node. */
    sendAway: (): void => endAll('cut-off'),

    /** Ends all streams, and lets none begin. Their readers come back, to this node or another one. */
    close(): void {
      isClosed = true
      clearInterval(ticks)
      endAll('stopping')
    },
  }

  function endAll(reason: 'stopping' | 'cut-off'): void {
    for (const stream of streams) {
      write(stream, notice('bye', { reason }))
      end(stream, reason)
    }
  }

  async function begin(stream: Stream, after: number | undefined): Promise<void> {
    try {
      const line = await lineOf(stream.delayMs)
      // The reader comes from a node that is ahead of this one.
      if (after !== undefined && after > journal.head()) await catchUp()
      const isComplete = await isReached(stream, after)
      const start = positionOf(line, stream)
      if (!isComplete) write(stream, notice('missed', {}))
      stream.upTo = (isComplete ? after : undefined) ?? start
      if (!isComplete || after === undefined)
        await sendState(stream, { position: start, now: clock() - stream.delayMs })
      // What all livestreams had since then may be much: one reader after the other looks for it.
      if (stream.upTo < start && !stream.livestreams) await choices.turn()
      // More may have come while the last part was written.
      for (;;) {
        const head = positionOf(line, stream)
        if (stream.upTo >= head || stream.isOver) break
        await sendSince(stream, { position: head, now: clock() - stream.delayMs })
        stream.upTo = head
      }
      // No event came since `positionOf`: there was no break.
      if (stream.isOver) return endIfUnused(stream.delayMs, line)
      add(line, stream)
      const at = new Date(clock() - stream.delayMs).toISOString()
      write(stream, notice('ready', { position: stream.upTo, at }, stream.upTo))
    } catch (err) {
      log.warn({ err }, 'a stream could not begin')
      end(stream, 'failed')
    }
  }

  /** The last position that readers of a line may see now. */
  function positionOf(line: DelayLine, { delayMs }: Stream): number {
    return delayMs === 0 ? journal.head() : line.following.position()
  }

  /**
   * Whether a reader can begin here without missing anything that it wants. It may be ahead of its line: on another node
   * that had got further, or with a shorter delay.
   */
  async function isReached({ mostBackMs, delayMs }: Stream, after: number | undefined): Promise<boolean> {
    if (delayMs > 0 && (await positionBefore(delayMs)) < journal.floor() - 1) return false
    if (after === undefined) return true
    const head = journal.head()
    if (!(after >= journal.floor() - 1 && after <= head)) return false
    return mostBackMs === Infinity || after === head || after >= (await positionBefore(mostBackMs))
  }

  /** The newest events of each livestream, and those that are announced for later. */
  async function sendState(stream: Stream, moment: Moment): Promise<void> {
    const { view } = stream
    const ids = stream.livestreams ?? (await livestreams.ids(view))
    await sendEach(stream, ids, (id) => state.of(id, view, moment))
  }

  /**
   * What a reader missed, by the rules of a return (journal.md): of each track and data topic the newest event, and all
   * control events that are still valid.
   */
  async function sendSince(stream: Stream, moment: Moment): Promise<void> {
    const { view, upTo, delayMs } = stream
    const filters = stream.livestreams?.map((id) => `radio/${id}/#`) ?? ['radio/#']
    const candidates = returnable
      .since(upTo, filters, delayMs === 0 ? moment.position : Infinity)
      .filter(({ topic }) => view.allows(topic))
    const missed = candidates.filter(
      ({ position, expires = Infinity }) => position <= moment.position && expires > moment.now,
    )
    const positions = new Set(missed.map(({ position }) => position))
    // Of a delayed reader: what is the newest now may lie ahead of it.
    const overtaken = candidates.filter(({ position }) => position > moment.position)
    for (const id of new Set(overtaken.map(({ topic }) => topic.split('/')[1] ?? ''))) {
      const shown = (await parts.parts.of(id, moment)).flatMap(({ values }) => values)
      for (const { topic, position } of [...shown, ...(await parts.parts.ahead(id, moment))])
        if (position > upTo && view.allows(topic)) positions.add(position)
    }
    const inOrder = [...positions].sort((a, b) => a - b)
    await sendEach(stream, inOrder, async (position) => {
      const entry = await journal.get(position)
      return entry && eventOf(entry, { id: position })
    })
  }

  /** Writes as fast as the reader reads, in turns that leave room for others. */
  async function sendEach<Item>(
    stream: Stream,
    items: readonly Item[],
    make: (item: Item) => Promise<Buffer | undefined>,
  ): Promise<void> {
    // Few do not wait for their turn: where events come all the time, a reader would never get to the head.
    let end = items.length > fewItems ? 0 : Infinity
    let made: Buffer[] = []
    let size = 0
    for (const [nth, item] of items.entries()) {
      if (performance.now() >= end) {
        await pieces.turn()
        end = performance.now() + pieceMs
      }
      if (stream.isOver) return
      const bytes = await make(item)
      if (bytes) made.push(bytes)
      size += bytes?.length ?? 0
      // Small writes cost more than the events.
      if (size < writeBytes && nth < items.length - 1) continue
      await stream.client.paced()
      if (size > 0) write(stream, Buffer.concat(made, size))
      made = []
      size = 0
    }
  }

  function lineOf(delayMs: number): Promise<DelayLine> {
    const known = lines.get(delayMs)
    if (known) return known
    const opened = openLine(delayMs)
    lines.set(delayMs, opened)
    opened.catch(() => lines.delete(delayMs))
    return opened
  }

  async function openLine(delayMs: number): Promise<DelayLine> {
    const from = delayMs === 0 ? journal.head() : await positionBefore(delayMs)
    const readers: Readers = { ofLivestream: new Map(), ofAll: new Set() }
    const following = follow({
      journal,
      clock,
      delayMs,
      from,
      deliver: (entry) => deliver(readers, entry),
      missed: () => beginAgain(readers),
      failed: (err) => log.warn({ err }, 'streams wait for the store'),
    })
    return { ...readers, following }
  }

  function add(line: Readers, stream: Stream): void {
    for (const readers of readersOf(line, stream)) readers.add(stream)
  }

  function readersOf({ ofAll, ofLivestream }: Readers, { livestreams }: Stream): Set<Stream>[] {
    if (!livestreams) return [ofAll]
    return livestreams.map((id) => {
      const readers = ofLivestream.get(id) ?? new Set()
      ofLivestream.set(id, readers)
      return readers
    })
  }

  /** The journal dropped messages before a line came to them: its readers get the state once more. */
  function beginAgain(line: Readers): void {
    for (const stream of streams) {
      const readers = stream.livestreams ? line.ofLivestream.get(stream.livestreams[0] ?? '') : line.ofAll
      if (!readers?.has(stream)) continue
      remove(line, stream)
      void begin(stream, Number.NaN)
    }
  }

  function deliver(line: Readers, entry: Entry): Promise<void> | undefined {
    if (!isHistory(entry)) return undefined
    const some = line.ofLivestream.get(entry.stream ?? '')
    const count = (some?.size ?? 0) + line.ofAll.size
    if (count === 0) return undefined
    const bytes = eventOf(entry, { id: entry.position })
    const isAllowed = new Map<string, boolean>()
    const send = (stream: Stream) => {
      if (stream.upTo >= entry.position) return 0
      const { view } = stream
      const allowed = isAllowed.get(view.key) ?? view.allows(entry.topic)
      isAllowed.set(view.key, allowed)
      if (!allowed) return 0
      write(stream, bytes)
      return 1
    }
    const readers = [some ?? [], line.ofAll]
    if (count > perTurn) return sendInTurns(readers, send, entry)
    let sent = 0
    for (const group of readers) for (const stream of group) sent += send(stream)
    note(entry, sent)
    return undefined
  }

  async function sendInTurns(
    readers: Iterable<Stream>[],
    send: (stream: Stream) => number,
    entry: Entry,
  ): Promise<void> {
    let sent = 0
    let inTurn = 0
    for (const group of readers) {
      for (const stream of group) {
        sent += send(stream)
        if (++inTurn % perTurn === 0) await nextTurn()
      }
    }
    note(entry, sent)
  }

  function note({ position }: Entry, sent: number): void {
    if (sent === 0) return
    metrics.deliveries.inc(sent)
    metrics.latency.sent(position, sent)
  }

  function write(stream: Stream, bytes: Buffer): void {
    if (stream.isOver) return
    stream.writtenAt = performance.now()
    if (!stream.client.write(bytes)) end(stream, 'slow')
  }

  async function checkRight(stream: Stream): Promise<void> {
    const isStill = await stream.isStillUser().catch(() => false)
    if (!isStill) end(stream, 'revoked')
  }

  /** Ends streams whose right ends now, and writes to those that were quiet. */
  async function tick(): Promise<void> {
    const [at, moment] = [clock(), performance.now()]
    let written = 0
    for (const stream of streams) {
      if (stream.expiresAt !== undefined && stream.expiresAt <= at) end(stream, 'expired')
      if (stream.isOver || moment - stream.writtenAt < quietMs) continue
      write(stream, comment)
      if (++written % perTurn === 0) await nextTurn()
    }
  }

  function end(stream: Stream, reason: Parameters<typeof leave>[1]): void {
    if (stream.isOver) return
    leave(stream, reason)
    stream.client.end()
  }

  function leave(
    stream: Stream,
    reason: 'closed' | 'slow' | 'revoked' | 'expired' | 'stopping' | 'cut-off' | 'failed',
  ): void {
    if (stream.isOver) return
    stream.isOver = true
    streams.delete(stream)
    shared.add('streams', -1)
    counts.set(stream.delayMs, (counts.get(stream.delayMs) ?? 0) - 1)
    metrics.streams.set(streams.size)
    metrics.streamsEnded.inc({ reason })
    void lines.get(stream.delayMs)?.then(
      (line) => {
        remove(line, stream)
        endIfUnused(stream.delayMs, line)
      },
      () => undefined,
    )
  }

  function remove(line: Readers, stream: Stream): void {
    if (!stream.livestreams) return void line.ofAll.delete(stream)
    for (const id of stream.livestreams) {
      const readers = line.ofLivestream.get(id)
      readers?.delete(stream)
      if (readers?.size === 0) line.ofLivestream.delete(id)
    }
  }

  function endIfUnused(delayMs: number, line: DelayLine): void {
    if ((counts.get(delayMs) ?? 0) > 0) return
    counts.delete(delayMs)
    lines.delete(delayMs)
    line.following.end()
  }
}
