import type { Journal } from '../../journal/journal.ts'
import { keyOf } from '../../store/commit.ts'
import { storeKeys } from '../../store/keys.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Sequences } from '../../store/nodes/sequences.ts'
import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { HubTime } from '../hub-time.ts'
import type { Outgoing } from './outgoing-qos2.ts'
import type { Session } from './session.ts'
import type { SessionRecord, StoredPlace } from './session-record.ts'

export type Progress = Awaited<ReturnType<typeof openProgress>>

/** Interval at which a node stores its progress, milliseconds. */
const intervalMs = 1_000
/** Maximum number of messages that one stored value lists, for all sessions together. */
const maxInValue = 50_000
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
  /** The position up to which the sessions that keep up have all messages. */
  deliveredUpTo: () => number
  outgoing: Pick<Outgoing, 'commitRemovals'>
  log: Log
  metrics: Metrics
}) {
  const { store, nodes, journal, hubTime, sessions, placeOf, sequences, deliveredUpTo, outgoing } = parts
  const { log, metrics } = parts
  const values = new Map<string, Value>()
  /** The value that this node stored last: its JSON without the version, and its version. */
  const last = { text: '', version: 0 }
  for await (const [key, value] of store.range(prefix)) values.set(runOf(key), JSON.parse(value.toString()))
  store.onOthers(prefix, (change) => {
    if ('tell' in change) return
    const run = runOf(keyOf(change))
    // Another node took this node for gone, and ended the run of this node. An empty text makes the next write store
    // the progress, even if nothing has changed.
    if (run === nodes.self) last.text = ''
    else if ('put' in change) values.set(run, JSON.parse(change.value.toString()))
    else values.delete(run)
  })
  let timer: NodeJS.Timeout | undefined

  return {
    /** Returns the hub time at which a run ended, milliseconds. Undefined: this node knows of no end. */
    endOf: (run: string): number | undefined => values.get(run)?.end?.ran,

    /** Stores the progress every second, and the removals of QoS 2 messages in the same commit. */
    start(): void {
      let isWriting = false
      const writeNow = async () => {
        if (isWriting) return
        isWriting = true
        await write()
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
      if (last.text === '' || [...sessions()].some(({ clean }) => !clean)) return
      const removed = store.commit([{ del: prefix + nodes.self }])
      await removed.catch((err: unknown) => log.warn({ err }, 'progress of sessions not removed'))
    },
  }

  /** Never rejects. */
  async function write(): Promise<void> {
    const version = sequences.next()
    const here = [...sessions()]
    const value = { upTo: deliveredUpTo(), unsettled: unsettledOf(here, placeOf) }
    const text = JSON.stringify(value satisfies Omit<Value, 'version'>)
    // For a session that was stored since, its record counts, although the session may have got further.
    const isLater = ({ clean, version }: Session) => !clean && version > last.version
    if (text === last.text && !here.some(isLater)) return
    const put = { put: prefix + nodes.self, value: `{"version":${version},${text.slice(1)}` }
    try {
      await outgoing.commitRemovals('all', (removals) => store.commit([put, ...removals]))
      Object.assign(last, { text, version })
    } catch (err) {
      metrics.storeFailures.inc()
      log.warn({ err }, 'progress of sessions not stored')
    }
  }
}

/**
 * Returns how far these sessions have got. Leaves out clean sessions. Also leaves out sessions that keep up and have
 * nothing in flight.
 *
 * A session gets null if `maxInValue` leaves no room for its messages. After a crash, the hub then uses the stored
 * record, and repeats more messages. Two kinds of sessions never get null:
 * - sessions whose `upTo` differs from the `upTo` of their record
 * - sessions that were sent QoS 2 messages
 */
export function unsettledOf(
  sessions: Iterable<Session>,
  placeOf: (session: Session) => StoredPlace,
): Unsettled {
  // Without a prototype: a client id can be the name of an inherited property.
  const unsettled: Unsettled = Object.create(null)
  let room = maxInValue
  for (const session of sessions) {
    if (session.clean || (session.reading === 'live' && session.inFlight.size === 0)) continue
    const { clientId, createdAt, backlog, inFlight } = session
    const size = backlog.length + inFlight.size
    const isAsRecorded = size > room && session.upTo === session.storedUpTo && !session.hasSentQos2
    if (!isAsRecorded) room -= size
    unsettled[clientId] = isAsRecorded ? null : { createdAt, ...placeOf(session) }
  }
  return unsettled
}

function runOf(key: string): string {
  return key.slice(prefix.length)
}
