import { namedKeys, storeKeys } from '../store/keys.ts'
import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import { gapsAsText, readGaps } from './gaps.ts'
import { createSilence, type Heard } from './silence.ts'

/** Time between two looks for silent livestreams, milliseconds. */
const lookMs = 30_000
/** A look that comes later than this shows that the process stood still, or that the clock was set, milliseconds. */
const latestLookMs = 2 * 60_000
/** What was learnt of a livestream is written once in this time, milliseconds. */
const writeMs = 3600_000
/** Records in one commit. */
const perCommit = 200

const { prefix, keyOf, nameOf } = namedKeys(storeKeys.heard)

/** A stored record of a livestream. */
interface StoredHeard {
  institutionId: string
  gaps: string
  hour: number
  since: number
  at: number
}

/**
 * Watches whether livestreams are silent (open.md §7), on each node. The leader stores what was learnt, so that a start
 * does not forget it.
 */
export async function openSilences(parts: {
  store: Pick<Store, 'range' | 'commit'>
  isLeader: () => boolean
  /** Whether this node is cut off from the others: it then hears of no events. */
  isCutOff: () => boolean
  clock: () => number
  log: Log
  records: Parameters<typeof createSilence>[0]
}) {
  const { store, isLeader, isCutOff, clock, log } = parts
  const silence = createSilence(parts.records)
  /** The livestreams with a record, and when the last event that it tells of was accepted, milliseconds since the epoch. */
  const written = new Map<string, number>()
  let lookedAt = clock()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()
  for await (const [key, value] of store.range(prefix)) {
    const { institutionId, gaps, hour, since, at }: StoredHeard = JSON.parse(value.toString())
    const read = readGaps(gaps, hour)
    written.set(nameOf(key), at)
    if (read) silence.restore(nameOf(key), { institutionId, gaps: read, since, at }, lookedAt)
  }

  return {
    start(): void {
      timer = setInterval(look, lookMs).unref()
    },

    /** Looks which livestreams have become silent, as the timer does. */
    look,

    /** Notes an event of any node. */
    published(livestreamIds: readonly string[], institutionId: string, now: number): void {
      for (const livestreamId of livestreamIds) {
        if (silence.published(livestreamId, institutionId, now) && isLeader())
          log.info({ livestream: livestreamId, institution: institutionId }, 'a livestream speaks again')
      }
    },

    /** Since when a livestream is silent, ISO 8601. Undefined: it is not. */
    silentSince(livestreamId: string): string | undefined {
      const since = silence.silentSince(livestreamId)
      return since === undefined ? undefined : new Date(since).toISOString()
    },

    /** Whether the hub could get no events for a while since the last one of a livestream. */
    isInterrupted(livestreamId: string): boolean {
      const heard = silence.get(livestreamId)
      return heard !== undefined && heard.from !== heard.at
    },

    /** The livestreams that are silent. `since`: when their last event was accepted, milliseconds since the epoch. */
    silent(): { livestreamId: string; institutionId: string; since: number }[] {
      return [...silence.silent()].map(([livestreamId, { institutionId, at }]) => {
        return { livestreamId, institutionId, since: at }
      })
    },

    /** The institution whose event of a livestream came last. */
    institutionOf: (livestreamId: string): string | undefined => silence.get(livestreamId)?.institutionId,

    /** How many livestreams are silent. */
    count: (): number => silence.silent().size,

    /** Writes what is not written yet. */
    async close(): Promise<void> {
      clearInterval(timer)
      if (isLeader()) write(unwritten(0))
      await writing
    },
  }

  function look(): void {
    const now = clock()
    if (isCutOff() || now < lookedAt || now - lookedAt > latestLookMs) silence.interrupted(now)
    lookedAt = now
    const found = silence.look(now)
    const gone = [...written.keys()].filter((id) => silence.get(id) === undefined)
    for (const id of gone) written.delete(id)
    if (!isLeader()) return
    for (const livestreamId of found) {
      const { institutionId = '', at = 0 } = silence.get(livestreamId) ?? {}
      const lastAt = new Date(at).toISOString()
      log.warn({ livestream: livestreamId, institution: institutionId, lastAt }, 'a livestream is silent')
    }
    write(unwritten(writeMs).concat(found, gone))
  }

  /** The livestreams with events that no record tells of, the last of them at least so many milliseconds later. */
  function unwritten(ms: number): string[] {
    const ids: string[] = []
    for (const [id, { since, at }] of silence.all()) {
      const known = written.get(id)
      if (at !== known && Math.abs(at - (known ?? since)) >= ms) ids.push(id)
    }
    return ids
  }

  /** Writes one after the other, so that an older record never replaces a newer one. Never rejects. */
  function write(livestreamIds: readonly string[]): void {
    for (let from = 0; from < livestreamIds.length; from += perCommit) {
      const ids = livestreamIds.slice(from, from + perCommit)
      writing = writing.then(async () => {
        const changes = ids.map((id) => changeOf(id, silence.get(id)))
        for (const id of ids) {
          const heard = silence.get(id)
          if (heard) written.set(id, heard.at)
        }
        await store.commit(changes).catch((err: unknown) => {
          for (const id of ids) written.delete(id)
          log.error({ err }, 'what is usual of livestreams not stored')
        })
      })
    }
  }
}

function changeOf(livestreamId: string, heard: Heard | undefined): Change {
  const key = keyOf(livestreamId)
  if (!heard) return { del: key }
  const { institutionId, gaps, since, at } = heard
  const record: StoredHeard = { institutionId, gaps: gapsAsText(gaps), hour: gaps.hour, since, at }
  return { put: key, value: JSON.stringify(record) }
}
