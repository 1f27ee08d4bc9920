import type { Journal } from '../../journal/journal.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { type Change, keyOf, type Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { HubTime } from '../hub-time.ts'
import type { Finished } from './outgoing-qos2.ts'
import type { Session } from './session.ts'
import type { Place, SessionRecord } from './session-record.ts'

export type Progress = Awaited<ReturnType<typeof openProgress>>

/** Time between two stored values of a node, milliseconds. */
const intervalMs = 1_000
/** Most messages that a value names. */
const maxInValue = 50_000
const prefix = 'progress/'

/** By client id, how far sessions have got; null: as their record says. */
type Unsettled = Record<string, (Place & { createdAt: number }) | null>

/** How far the sessions of one run of a node have got. */
interface Value {
  /** Records with a higher number are later than this value. */
  version: number
  /** All sessions of the run are settled up to this position, except those in `unsettled`. */
  upTo: number
  unsettled: Unsettled
  /** Set when the run has ended: the position at which the journal ended then, and the hub time. */
  end?: { head: number; ran: number }
}

/**
 * The progress of the persistent sessions that are connected to this node. The node stores it once a second, in place
 * of a record for each acknowledgement. After a crash, messages accepted since the last value go out again.
 */
export async function openProgress(parts: {
  store: Store
  nodes: Nodes
  journal: Journal
  hubTime: HubTime
  log: Log
  metrics: Metrics
}) {
  const { store, nodes, journal, hubTime, log, metrics } = parts
  const values = new Map<string, Value>()
  /** The value that was stored last. */
  let last = ''
  for await (const [key, value] of store.range(prefix)) values.set(runOf(key), JSON.parse(value.toString()))
  store.onOthers(prefix, (change) => {
    if ('tell' in change) return
    const run = runOf(keyOf(change))
    // Another node took this one for gone, and ended its run. The next value is stored even if nothing has changed.
    if (run === nodes.self) last = ''
    else if ('put' in change) values.set(run, JSON.parse(change.value.toString()))
    else values.delete(run)
  })
  let timer: NodeJS.Timeout | undefined

  return {
    /** The end of a run, in hub time; undefined if its node is not known to be gone. */
    endOf: (run: string): number | undefined => values.get(run)?.end?.ran,

    /** Stores the value of this node from now on. `takeFinished` gives the removals to commit with the value. */
    start(valueNow: () => Omit<Value, 'end'>, takeFinished: () => Finished): void {
      let isWriting = false
      const writeNow = async () => {
        if (isWriting) return
        isWriting = true
        await write(valueNow(), takeFinished)
        isWriting = false
      }
      timer = setInterval(() => void writeNow(), intervalMs).unref()
    },

    /**
     * How far a session had got by the end of the run that its record names. `replay`: messages accepted up to
     * there may have been sent, and go out again.
     */
    placeOf(record: SessionRecord): Place & { replay: number } {
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

    /** Stores the end of a run: where the journal ends now, and the hub time. */
    async endRun(run: string): Promise<void> {
      const value = values.get(run) ?? { version: 0, upTo: 0, unsettled: {} }
      if (value.end) return
      const ended = { ...value, end: { head: journal.head(), ran: Math.round(hubTime.now()) } }
      await store.commit([{ put: prefix + run, value: JSON.stringify(ended) }])
      values.set(run, ended)
    },

    /** Runs of nodes that have ended, and whose value is still stored. */
    ended: (): string[] => [...values.keys()].filter((run) => !nodes.isLiving(run)),

    /** The change that removes the value of a run to which no session refers. Call `removed` when it is stored. */
    removal: (run: string): Change => ({ del: prefix + run }),
    removed: (run: string): void => void values.delete(run),

    /** Call it when all sessions have left: removes the value of this node. Never rejects. */
    async close(): Promise<void> {
      clearInterval(timer)
      if (last === '') return
      const removed = store.commit([{ del: prefix + nodes.self }])
      await removed.catch((err: unknown) => log.warn({ err }, 'progress of sessions not removed'))
    },
  }

  /** Never rejects. */
  async function write(value: Omit<Value, 'end'>, takeFinished: () => Finished): Promise<void> {
    const { version, ...rest } = value
    const text = JSON.stringify(rest)
    if (text === last) return
    const finished = takeFinished()
    try {
      const put = { put: prefix + nodes.self, value: `{"version":${version},${text.slice(1)}` }
      await store.commit([put, ...finished.changes])
      last = text
    } catch (err) {
      finished.putBack()
      metrics.storeFailures.inc()
      log.warn({ err }, 'progress of sessions not stored')
    }
  }
}

/**
 * How far these sessions have got. Settled sessions are left out. If a session needs more than the rest of `maxInValue`
 * messages, and its record still has its position, it gets null: after a crash it gets more messages twice.
 */
export function unsettledOf(sessions: Iterable<Session>, placeOf: (session: Session) => Place): Unsettled {
  // Without a prototype: any text may be a client id.
  const unsettled: Unsettled = Object.create(null)
  let room = maxInValue
  for (const session of sessions) {
    if (session.clean || (session.isLive && session.inFlight.size === 0)) continue
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
