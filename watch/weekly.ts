import { type Week, weekBeside, weekOf } from '../event/week.ts'
import { storeKeys } from '../store/keys.ts'
import { type Change, ConditionFailed, type Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import { inTurns } from '../telemetry/turns.ts'
import { add, type Counts, emptyCounts } from './programme.ts'

export type Weekly = ReturnType<typeof createWeekly>

/** So many weeks are kept, that of now included. */
const keptWeeks = 13
/** Time between two writes of what was counted, milliseconds. A crash loses what was counted in between. */
const writeMs = 60_000
/** Records in one commit. */
const perCommit = 200
/** Another node may have changed a record at the same time. */
const mostTries = 5

const { prefix: counted } = storeKeys.counted
const { prefix: refused } = storeKeys.refused

/** What was refused of the events of an institution. */
export interface Refusals {
  /** Events that were refused, wholly or for some of their services. */
  events: number
  /** How many of them had an error of this code. */
  codes: Record<string, number>
}

/**
 * The counts for weekly reports (open.md §7) in the store: a small record for each livestream and each institution of a
 * week. Counts wait in memory, and are added to those in the store once a minute and before they are asked for.
 */
export function createWeekly(parts: {
  store: Pick<Store, 'get' | 'range' | 'commit'>
  isLeader: () => boolean
  clock: () => number
  log: Log
}) {
  const { store, isLeader, clock, log } = parts
  const ofLivestreams = createSums({ store, keyOf: keyOfLivestream, add, read: readCounts })
  const ofInstitutions = createSums({
    store,
    keyOf: (_institutionId, of) => keyOfInstitution(of),
    add: addRefusals,
    read: readRefusals,
  })
  let week = weekOf(clock())
  /** Name of the week in which records that are too old were removed last. */
  let removedIn = ''
  let writing: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  return {
    start(): void {
      timer = setInterval(() => void write(), writeMs).unref()
    },

    /** What is counted of a livestream now. The next event gets others: add to them at once. */
    countsOf: (livestreamId: string, institutionId: string, now: number): Counts =>
      ofLivestreams.of(livestreamId, current(now), institutionId),

    /** Counts a refused event of an institution, by the codes of its errors. */
    refused(institutionId: string, codes: readonly string[]): void {
      const once = Object.fromEntries(codes.map((code) => [code, 1]))
      addRefusals(ofInstitutions.of(institutionId, current(), institutionId), { events: 1, codes: once })
    },

    /**
     * The counts of a week: `livestreams` has those with events, by their ids. Undefined: the week is not kept any more. What
     * another node has counted within the last minute is missing.
     */
    async of(week: Week, institutionId: string) {
      if (week.from < oldest().from) return undefined
      await write()
      const of = { week, institutionId }
      const livestreams = new Map<string, Counts>()
      for await (const [key, value] of store.range(keyOfLivestream('', of)))
        livestreams.set(decodeURIComponent(key.slice(key.lastIndexOf('/') + 1)), readCounts(value))
      return { livestreams, refusals: readRefusals(await store.get(keyOfInstitution(of))) }
    },

    /** Writes what is not written yet. */
    async close(): Promise<void> {
      clearInterval(timer)
      await write()
    },
  }

  function current(now = clock()): Week {
    if (now < week.from || now >= week.to) week = weekOf(now)
    return week
  }

  function oldest(): Week {
    return weekBeside(current(), 1 - keptWeeks)
  }

  /** Never rejects: what could not be written is written with the next. */
  function write(): Promise<void> {
    writing = writing.then(async () => {
      try {
        await ofLivestreams.write()
        await ofInstitutions.write()
        if (isLeader() && removedIn !== current().name) await removeOld()
      } catch (err) {
        log.error({ err }, 'counts of weekly reports not stored')
      }
    })
    return writing
  }

  async function removeOld(): Promise<void> {
    for (const prefix of [counted, refused]) {
      const keys: string[] = []
      for await (const [key] of store.range(prefix, { before: oldest().name })) keys.push(key)
      for (let from = 0; from < keys.length; from += perCommit)
        await store.commit(keys.slice(from, from + perCommit).map((key) => ({ del: key })))
    }
    removedIn = current().name
  }
}

/** What a count is of, beside its livestream. */
interface CountOf {
  week: Week
  institutionId: string
}

/** Sums that wait to be added to records of the store. If the outcome of a commit is unknown, they may count twice. */
function createSums<Sum>(parts: {
  store: Pick<Store, 'get' | 'commit'>
  /** The key of a record. */
  keyOf: (id: string, of: CountOf) => string
  /** Adds to a sum, in place. */
  add: (sum: Sum, more: Sum) => void
  /** Reads a record. Undefined: there is none yet. */
  read: (value: Buffer | undefined) => Sum
}) {
  const { store, keyOf, add, read } = parts
  /** Sums since the last write, by livestream or institution. An event looks here only. */
  const fresh = new Map<string, CountOf & { sum: Sum }>()
  /** Sums that the next write adds to the records, by key. */
  const waiting = new Map<string, Sum>()

  return {
    /** The sum of a livestream or an institution, to be added to. */
    of(id: string, week: Week, institutionId: string): Sum {
      const known = fresh.get(id)
      if (known?.week === week && known.institutionId === institutionId) return known.sum
      if (known) wait(keyOf(id, known), known.sum)
      const sum = read(undefined)
      fresh.set(id, { week, institutionId, sum })
      return sum
    },

    /** Adds all to the records. Rejects if the store fails: then the rest goes on waiting. */
    async write(): Promise<void> {
      await inTurns([...fresh], ([id, one]) => {
        // It is of another week by now, and waits already.
        if (fresh.get(id) !== one) return
        fresh.delete(id)
        wait(keyOf(id, one), one.sum)
      })
      const taken = [...waiting]
      waiting.clear()
      try {
        while (taken.length > 0) {
          await addToRecords(taken.slice(0, perCommit))
          taken.splice(0, perCommit)
        }
      } finally {
        for (const [key, sum] of taken) wait(key, sum)
      }
    },
  }

  function wait(key: string, sum: Sum): void {
    const known = waiting.get(key)
    if (known) add(known, sum)
    else waiting.set(key, sum)
  }

  async function addToRecords(sums: readonly [key: string, more: Sum][]): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await store.commit(await Promise.all(sums.map(changeOf)))
        return
      } catch (error) {
        if (!(error instanceof ConditionFailed) || tries === mostTries) throw error
      }
    }
  }

  async function changeOf([key, more]: readonly [key: string, more: Sum]): Promise<Change> {
    const value = await store.get(key)
    const sum = read(value)
    add(sum, more)
    return { put: key, value: JSON.stringify(sum), when: value ? { value } : 'absent' }
  }
}

function readCounts(value: Buffer | undefined): Counts {
  const empty = emptyCounts()
  if (!value) return empty
  const { sums, longest }: Counts = JSON.parse(value.toString())
  // A former release may have counted less.
  return { sums: { ...empty.sums, ...sums }, longest }
}

function readRefusals(value: Buffer | undefined): Refusals {
  return value ? JSON.parse(value.toString()) : { events: 0, codes: {} }
}

function addRefusals(sum: Refusals, { events, codes }: Refusals): void {
  sum.events += events
  for (const [code, count] of Object.entries(codes)) sum.codes[code] = (sum.codes[code] ?? 0) + count
}

function keyOfLivestream(livestreamId: string, of: CountOf): string {
  return `${counted}${placeOf(of)}/${encodeURIComponent(livestreamId)}`
}

function keyOfInstitution(of: CountOf): string {
  return refused + placeOf(of)
}

function placeOf({ week, institutionId }: CountOf): string {
  return `${encodeURIComponent(week.name)}/${encodeURIComponent(institutionId)}`
}
