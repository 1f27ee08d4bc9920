import { type Week, weekBeside, weekOf } from '../event/week.ts'
import { storeKeys } from '../store/keys.ts'
import { type Change, ConditionFailed, type Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
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

/** What was counted of an institution in a week. */
export interface WeekOfInstitution {
  /** By the id of a livestream: those that had events. */
  livestreams: Map<string, Counts>
  refusals: Refusals
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
  const ofLivestreams = createSums({ store, prefix: counted, add, read: readCounts })
  const ofInstitutions = createSums({ store, prefix: refused, add: addRefusals, read: readRefusals })
  let week = weekOf(clock())
  /** Where the records of institutions are in this week: strings made once, because each event asks. */
  const places = new Map<string, string>()
  /** Name of the week in which records that are too old were removed last. */
  let removedIn = ''
  let writing: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  return {
    start(): void {
      timer = setInterval(() => void write(), writeMs).unref()
    },

    /** What is counted of a livestream now. The next event gets others: add to them at once. */
    countsOf: (livestreamId: string, institutionId: string): Counts =>
      ofLivestreams.of(placeNow(institutionId), livestreamId),

    /** Counts a refused event of an institution, by the codes of its errors. */
    refused(institutionId: string, codes: readonly string[]): void {
      const once = Object.fromEntries(codes.map((code) => [code, 1]))
      addRefusals(ofInstitutions.of(placeNow(institutionId), ''), { events: 1, codes: once })
    },

    /**
     * What was counted in a week. Undefined: it is not kept any more. What another node has counted within the last minute
     * is missing.
     */
    async of(week: Week, institutionId: string): Promise<WeekOfInstitution | undefined> {
      if (week.from < oldest().from) return undefined
      await write()
      const place = placeOf(week, institutionId)
      const livestreams = new Map<string, Counts>()
      for await (const [key, value] of store.range(`${counted}${place}/`))
        livestreams.set(decodeURIComponent(key.slice(key.lastIndexOf('/') + 1)), readCounts(value))
      return { livestreams, refusals: readRefusals(await store.get(refused + place)) }
    },

    /** Writes what is not written yet. */
    async close(): Promise<void> {
      clearInterval(timer)
      await write()
    },
  }

  function current(): Week {
    const now = clock()
    if (now < week.from || now >= week.to) {
      week = weekOf(now)
      places.clear()
    }
    return week
  }

  function placeNow(institutionId: string): string {
    const week = current()
    return madeFor(places, institutionId, () => placeOf(week, institutionId))
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

interface Waiting<Sum> {
  place: string
  id: string
  sum: Sum
}

/** Sums that wait to be added to records of the store. If the outcome of a commit is unknown, they may count twice. */
function createSums<Sum>(parts: {
  store: Pick<Store, 'get' | 'commit'>
  /** Of the keys of the records. */
  prefix: string
  /** Adds to a sum, in place. */
  add: (sum: Sum, more: Sum) => void
  /** Reads a record. Undefined: there is none yet. */
  read: (value: Buffer | undefined) => Sum
}) {
  const { store, prefix, read } = parts
  /** By the place of an institution, and what its record there is named by: '', or a livestream. */
  let waiting = new Map<string, Map<string, Sum>>()

  return {
    of,

    /** Adds all to the records. Rejects if the store fails: then the rest goes on waiting. */
    async write(): Promise<void> {
      const taken = [...waiting].flatMap(([place, sums]) =>
        [...sums].map(([id, sum]) => ({ place, id, sum })),
      )
      waiting = new Map()
      try {
        while (taken.length > 0) {
          await addToRecords(taken.slice(0, perCommit))
          taken.splice(0, perCommit)
        }
      } finally {
        for (const { place, id, sum } of taken) parts.add(of(place, id), sum)
      }
    },
  }

  /** What waits to be added to a record. */
  function of(place: string, id: string): Sum {
    const sums = madeFor(waiting, place, () => new Map<string, Sum>())
    return madeFor(sums, id, () => read(undefined))
  }

  async function addToRecords(sums: readonly Waiting<Sum>[]): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await store.commit(await Promise.all(sums.map(changeOf)))
        return
      } catch (error) {
        if (!(error instanceof ConditionFailed) || tries === mostTries) throw error
      }
    }
  }

  async function changeOf({ place, id, sum: more }: Waiting<Sum>): Promise<Change> {
    const key = prefix + place + (id === '' ? '' : `/${encodeURIComponent(id)}`)
    const value = await store.get(key)
    const sum = read(value)
    parts.add(sum, more)
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

/** The value of a key, made when it is asked for first. */
function madeFor<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

function placeOf({ name }: Week, institutionId: string): string {
  return `${encodeURIComponent(name)}/${encodeURIComponent(institutionId)}`
}
