import type { Journal } from '../../journal/journal.ts'
import { storeKeys } from '../../store/keys.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Sequences } from '../../store/nodes/sequences.ts'
import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Reading } from '../fanout/reading.ts'
import type { HubTime } from '../hub-time.ts'
import { eachOf } from './each-of.ts'
import type { Outgoing } from './outgoing-qos2.ts'
import type { Session, SessionBounds } from './session.ts'
import type { SessionRecord, StoredPlace } from './session-record.ts'

export type Progress = Awaited<ReturnType<typeof openProgress>>

/** Interval at which a node stores its progress, milliseconds. */
const intervalMs = 1_000
const { prefix } = storeKeys.progress

/** How far the sessions have got, by client id. Null: the record of the session says how far. */
type Unsettled = Record<string, (StoredPlace & { createdAt: number }) | null>

/** The progress of the sessions on one node in one run, from its start to its end. */
interface Value {
  /** A session record with a higher version is later than this value. */
  version: number
  /** All clients have acknowledged the messages up to this position; exceptions are in `unsettled`. */
  upTo: number
  unsettled: Unsettled
  /** Set at the end of the run. `head`: the end of the journal then. `ran`: the hub time then, milliseconds. */
  end?: { head: number; ran: number }
}

/**
 * Stores the progress of the persistent sessions on this node, as one value each second. After a crash, the hub repeats
 * the messages accepted since (docs/decisions, "A node stores the places of its sessions once a second").
 */
export async function openProgress(parts: {
  store: Store
  nodes: Nodes
  journal: Journal
  hubTime: HubTime
  /** The sessions on this node that may have got further than their records say. */
  sessions: () => Iterable<Session>
  placeOf: (session: Session) => StoredPlace
  sequences: Pick<Sequences, 'next'>
  reading: Pick<Reading, 'upToOf' | 'deliveredUpTo'>
  outgoing: Pick<Outgoing, 'commitRemovals'>
  bounds: Pick<SessionBounds, 'maxListed'>
  log: Log
  metrics: Metrics
}) {
  const { store, nodes, journal, hubTime, sessions, placeOf, sequences, reading, outgoing } = parts
  const { log, metrics } = parts
  const { maxListed } = parts.bounds
  const values = new Map<string, Value>()
  /** The value that this node stored last: its JSON without the version, and its version. */
  const last = { text: '', version: 0 }
  for await (const [key, value] of store.range(prefix)) values.set(runOf(key), JSON.parse(value.toString()))
  store.onOthers(prefix, (key, value) => {
    const run = runOf(key)
    // Another node took this node for gone, and ended the run of this node. An empty text makes the next write store
    // the progress, even if nothing has changed.
    if (run === nodes.self) last.text = ''
    else if (value) values.set(run, JSON.parse(value.toString()))
    else values.delete(run)
  })
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  return {
    /** Returns the hub time at which a run ended, milliseconds. Undefined: this node knows of no end. */
    endOf: (run: string): number | undefined => values.get(run)?.end?.ran,

    /**
     * Stores the progress every second, and the removals of QoS 2 messages in the same commit. `storeRecord` stores a
     * session by itself.
     */
    start(storeRecord: (session: Session) => Promise<void>): void {
      let isWriting = false
      const writeNow = async () => {
        if (isWriting) return
        isWriting = true
        await write(storeRecord)
        isWriting = false
      }
      timer = setInterval(() => void writeNow(), intervalMs).unref()
    },

    /**
     * Returns how far a session had got. After a crash, the messages after `upTo`, up to `replay`, must be sent again.
     */
    placeOf(record: SessionRecord): StoredPlace & { replay: number } {
      const { node, clientId, createdAt, version } = record
      const value = node === undefined ? undefined : values.get(node)
      const replay =
        node === undefined ? (record.replay ?? record.upTo) : (value?.end?.head ?? journal.head())
      const isLater = !value || version > value.version
      const own = isLater ? null : value.unsettled[clientId]
      const isSettled = own !== null && own?.createdAt !== createdAt
      if (isSettled) return { upTo: Math.max(record.upTo, value?.upTo ?? 0), owed: [], replay }
      const { upTo, owed, lost } = own ?? record
      return { upTo, owed, ...(lost !== undefined && { lost }), replay }
    },

    async endRun(run: string): Promise<void> {
      const value = values.get(run) ?? { version: 0, upTo: 0, unsettled: {} }
      if (value.end) return
      const ended = { ...value, end: { head: journal.head(), ran: Math.round(hubTime.now()) } }
      await store.commit([{ put: prefix + run, value: JSON.stringify(ended) }])
      values.set(run, ended)
    },

    /** Returns the runs that have ended and whose progress is still stored. */
    ended: (): string[] => [...values.keys()].filter((run) => !nodes.isLiving(run)),

    /** Removes the progress of runs that no session names. */
    async remove(runs: readonly string[]): Promise<void> {
      await store.commit(runs.map((run) => ({ del: prefix + run })))
      for (const run of runs) values.delete(run)
    },

    /** Removes the progress of this node, unless a session still needs it, as after a crash. Never rejects. */
    async close(): Promise<void> {
      clearInterval(timer)
      isClosed = true
      if (last.text === '' || [...sessions()].some(({ clean }) => !clean)) return
      const removed = store.commit([{ del: prefix + nodes.self }])
      await removed.catch((err: unknown) => log.warn({ err }, 'progress of sessions not removed'))
    },
  }

  /**
   * Never rejects. Stores the sessions that the value will not list first, each by itself: the value then says that
   * their records count.
   */
  async function write(storeRecord: (session: Session) => Promise<void>): Promise<void> {
    const stored = new Set<Session>()
    try {
      while (!isClosed) {
        const here = [...sessions()]
        const { listed, others } = divide(here, maxListed)
        const moved = others.filter((session) => !stored.has(session) && !isAsRecorded(session))
        if (moved.length === 0) return await commitValue(here, listed, others)
        for (const session of moved) stored.add(session)
        await eachOf(moved, storeRecord)
      }
    } catch (err) {
      metrics.storeFailures.inc()
      log.warn({ err }, 'progress of sessions not stored')
    }
  }

  /**
   * Whether the record of a session may stay as it is. The client may have acknowledged messages that the record names.
   * After a crash these come again, but none at QoS 2.
   */
  function isAsRecorded(session: Session): boolean {
    return reading.upToOf(session) === session.storedUpTo && !session.hasSentQos2
  }

  async function commitValue(here: Session[], listed: Session[], others: Session[]): Promise<void> {
    const version = sequences.next()
    // Without a prototype: a client id can be the name of an inherited property.
    const unsettled: Unsettled = Object.create(null)
    for (const session of listed)
      unsettled[session.clientId] = { createdAt: session.createdAt, ...placeOf(session) }
    for (const { clientId } of others) unsettled[clientId] = null
    const value = { upTo: reading.deliveredUpTo(), unsettled }
    const text = JSON.stringify(value satisfies Omit<Value, 'version'>)
    // For a session that was stored since, its record counts, although the session may have got further.
    const isLater = ({ clean, version }: Session) => !clean && version > last.version
    if (text === last.text && !here.some(isLater)) return
    const put = { put: prefix + nodes.self, value: `{"version":${version},${text.slice(1)}` }
    // Where the record counts, a QoS 2 message that the client got since then would come from the journal again.
    const isCovered = (clientId: string) => unsettled[clientId] !== null
    await outgoing.commitRemovals(isCovered, (removals) => store.commit([put, ...removals]))
    Object.assign(last, { text, version })
  }
}

/**
 * Divides the sessions whose places a value of progress must tell: `listed` fit into it, of `others` the records count.
 * Leaves out clean sessions. Also leaves out sessions that keep up and have nothing in flight. `others` are those that
 * are owed most: a few clients that acknowledge nothing must not take the room of all.
 */
export function divide(sessions: Iterable<Session>, most: number): { listed: Session[]; others: Session[] } {
  const unsettled = [...sessions].filter(
    ({ clean, reading, inFlight }) => !clean && (reading !== 'live' || inFlight.size > 0),
  )
  let end = unsettled.length
  let size = 0
  for (const session of unsettled) size += sizeOf(session)
  if (size > most) unsettled.sort((a, b) => sizeOf(a) - sizeOf(b))
  for (const largest of unsettled.toReversed()) {
    if (size <= most) break
    size -= sizeOf(largest)
    end--
  }
  return { listed: unsettled.slice(0, end), others: unsettled.slice(end) }
}

function sizeOf({ backlog, inFlight }: Session): number {
  return 1 + backlog.length + inFlight.size
}

function runOf(key: string): string {
  return key.slice(prefix.length)
}
