import { storeKeys } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import { createCounting } from './counting.ts'
import { type Entry, everyPrefix, latestPrefix, storedEntries } from './entry.ts'
import type { Journal } from './journal.ts'
import {
  isHistory,
  type KeepingLimits,
  type KeptFrom,
  moveWindow,
  streamBytesOf,
  type WindowPart,
} from './keeping.ts'
import { createRemoving } from './removing.ts'
import type { RetainedMessages } from './retained.ts'
import type { Returnable } from './returnable.ts'

export type Trimming = Awaited<ReturnType<typeof openTrimming>>

/** Maximum number of messages in a page. A sweep checks the streams of a page together. */
const pageSize = 10_000
/**
 * In `trimNextPage`, a page also ends after a number of bytes of events. That number is 1/128 of `limits.historyBytes`,
 * but at least `minPageBytes`.
 */
const pagesOfHistory = 128
const minPageBytes = 16 * 1024
/** One sweep counts at most this many messages (`counting.ts`). */
const maxCounted = 200_000
/** One sweep reads at most this many messages that have left the window, and as many to shorten the history. */
const maxPassed = 100_000
/** A round over all streams takes many sweeps. One sweep ends its part after this many streams or index entries. */
const roundLimits = { streams: 100, entries: 5_000 }

const { prefix } = storeKeys.trimming
const stateKey = `${prefix}state`

/** How far the trimming has got. After a crash the stored state may lag behind: repeated work does no harm. */
interface State {
  window: WindowPart[]
  /** The journal has every message from this position on. */
  floor: number
  /** Messages before this position have left the window, and their streams were checked. */
  passed: number
  /** Events before this position do not count as history. */
  historyFrom: number
  /** Bytes of the history before `passed`. Each round over all streams counts them anew. */
  historyBytes: number
  /** The round over all streams. `at`: the key at which it continues. `bytes`: the bytes of history counted so far. */
  round: { at: string; bytes: number }
}

/**
 * Removes messages that no rule keeps (`keeping.ts`). One node does the work for all, in bounded pieces, and stores how
 * far the work has got.
 *
 * A sweep
 * - checks the streams of the messages that have left the window, and shortens the streams with the most history
 * - removes the oldest events if there is still too much history
 * - checks some other streams, because messages expire in silent streams too
 * - moves the floor to the new beginning of the window. Messages below the new floor stay until a later sweep, when all
 *   nodes have received the floor: docs/decisions, "The journal is trimmed in two steps, by one node".
 */
export async function openTrimming(parts: {
  store: Store
  /** Whether this node is the one that trims the journal. */
  isLeader: () => boolean
  journal: Journal
  retained: RetainedMessages
  returnable: Returnable
  limits: KeepingLimits
  clock: () => number
}) {
  const { store, isLeader, journal, retained, returnable, limits, clock } = parts
  const counting = createCounting(store, journal)
  const removing = createRemoving({ store, journal, retained, returnable, inWindow: counting.of, limits })
  let running: Promise<void> | undefined
  let isClosed = false
  journal.raiseFloor((await readState(store)).floor)
  store.onOthers(prefix, (_key, value) => {
    if (value) journal.raiseFloor(parse(value).floor)
  })

  return {
    /** Drops expired messages from memory. The node that trims also removes some of the messages that no rule keeps. */
    async sweep(): Promise<void> {
      returnable.sweep(clock())
      if (!isLeader() || running || isClosed) return
      running = trim()
        // What this sweep counted may be stored nowhere.
        .catch((error: unknown) => {
          counting.forget()
          throw error
        })
        .finally(() => {
          running = undefined
        })
      await running
    },

    /** Begins no further work, and resolves when a sweep under way has ended. */
    async close(): Promise<void> {
      isClosed = true
      await running?.catch(() => undefined)
    },
  }

  async function trim(): Promise<void> {
    let state = await readState(store)
    const head = journal.head()
    counting.beginAt(state.passed)
    const { upTo, bytes } = await counting.advance(state.window.at(-1)?.upTo ?? 0, maxCounted)
    // The whole window must be counted first. A node that begins to trim takes some sweeps to count.
    if (upTo >= head) state = await remove(state)
    const { parts: window, passed } = moveWindow(state.window, { bytes, head: upTo }, limits, clock())
    state = { ...state, window, floor: Math.max(state.floor, passed + 1) }
    await writeState(store, state)
    journal.raiseFloor(state.floor)
  }

  async function remove(before: State): Promise<State> {
    let state = before
    // Another node may have stored a later floor than this node has received (`journal.floor()`). Above the received
    // floor, this node may not know all retained messages yet, and could remove some. So trim only below the received
    // floor.
    const floor = Math.min(state.floor, journal.floor())
    while (state.passed < floor && state.passed < before.passed + maxPassed && !isClosed) {
      state = await trimNextPage(state, floor)
      await writeState(store, state)
    }
    for (
      let count = 0;
      state.historyBytes > limits.historyBytes && count < maxPassed && !isClosed;
      count += pageSize
    ) {
      state = await shorten(state)
      await writeState(store, state)
    }
    return isClosed ? state : goRound(state)
  }

  /** Reads a page of messages that have left the window, and checks their streams. */
  async function trimNextPage(state: State, floor: number): Promise<State> {
    // A small page, because the byte limit of a livestream is calculated only once for each page.
    const most = Math.max(minPageBytes, limits.historyBytes / pagesOfHistory)
    const { entries, end: passed } = await readStretch(store, state.passed, floor, most)
    counting.left(entries, passed)
    const { added, removed } = await trimStreams(streamsOf(entries), { ...state, passed }, state.passed)
    return { ...state, passed, historyBytes: Math.max(0, state.historyBytes + added - removed) }
  }

  /** Takes the oldest events out of the history, at most a page, until the rest is within the limit. */
  async function shorten(state: State): Promise<State> {
    const most = state.historyBytes - limits.historyBytes
    const { entries, end, historyBytes } = await readStretch(store, state.historyFrom, state.passed, most)
    // If the page reaches up to `passed`, no event is left in the history.
    const left = end === state.passed ? 0 : Math.max(0, state.historyBytes - historyBytes)
    const shortened = { ...state, historyFrom: end, historyBytes: left }
    const { removed } = await trimStreams(streamsOf(entries), shortened, state.passed)
    return { ...shortened, historyBytes: Math.max(0, shortened.historyBytes - removed) }
  }

  /** Checks the next streams, even those without new messages. The end of the round corrects `historyBytes`. */
  async function goRound(state: State): Promise<State> {
    let { historyBytes } = state
    let { at, bytes } = state.round
    for (
      let streams = 0, entries = 0;
      streams < roundLimits.streams && entries < roundLimits.entries && !isClosed;
      streams++
    ) {
      const next = await streamAfter(store, at)
      if (!next) return { ...state, historyBytes: bytes, round: { at: '', bytes: 0 } }
      const { kept, removed, read, hasLatest } = await trimStreams([next.stream], state, state.passed)
      // A round visits a stream twice if the stream has entries in both indexes. The bytes of the stream count only at
      // the visit to `latest/`.
      if (next.isLatest || !hasLatest) bytes += kept
      historyBytes = Math.max(0, historyBytes - removed)
      entries += read
      at = next.behind
    }
    return { ...state, historyBytes, round: { at, bytes } }
  }

  function trimStreams(streams: Iterable<string>, state: State, before: number) {
    return removing.trimStreams(streams, reachOf(state, limits, clock()), before)
  }
}

function reachOf({ passed, historyFrom, historyBytes }: State, limits: KeepingLimits, now: number): KeptFrom {
  return { window: passed, historyFrom, streamBytes: streamBytesOf(limits, historyBytes), now }
}

/**
 * Reads messages without their payloads, from position `from` to just before `end`. Stops when a page is full, or after
 * `most` bytes of history. The returned `end`: the result has all messages before this position.
 */
async function readStretch(store: Store, from: number, end: number, most: number) {
  const entries: Entry[] = []
  let historyBytes = 0
  for await (const { entry, bytes } of storedEntries(store, { from, before: end })) {
    if (entries.length === pageSize || historyBytes >= most) {
      return { entries, historyBytes, end: (entries.at(-1)?.position ?? 0) + 1 }
    }
    entries.push({ ...entry, payload: noPayload })
    if (isHistory(entry)) historyBytes += bytes
  }
  return { entries, historyBytes, end }
}

/**
 * Finds the next index after the key `at`, first in `every/`, then in `latest/`. `behind`: a key after all entries of
 * this index, for the next `at`. Undefined: no index is left.
 */
async function streamAfter(
  store: Store,
  at: string,
): Promise<{ stream: string; isLatest: boolean; behind: string } | undefined> {
  for (const indexed of [everyPrefix, latestPrefix]) {
    if (at > indexed && !at.startsWith(indexed)) continue
    const from = at.startsWith(indexed) ? at.slice(indexed.length) : ''
    for await (const [key] of store.range(indexed, { from, most: 1 })) {
      const name = key.slice(indexed.length, key.lastIndexOf('/'))
      // `behind` sorts after all entries of the index, because `0` follows `/` in ASCII.
      return {
        stream: decodeURIComponent(name),
        isLatest: indexed === latestPrefix,
        behind: `${indexed}${name}0`,
      }
    }
  }
  return undefined
}

/** The streams of messages, in the order in which their indexes are stored. */
function streamsOf(entries: readonly Entry[]): string[] {
  return [...new Set(entries.map(({ stream, topic }) => stream ?? topic))].sort()
}

const noPayload = Buffer.alloc(0)

async function readState(store: Store): Promise<State> {
  const stored = await store.get(stateKey)
  if (stored) return parse(stored)
  return { window: [], floor: 1, passed: 1, historyFrom: 1, historyBytes: 0, round: { at: '', bytes: 0 } }
}

async function writeState(store: Store, state: State): Promise<void> {
  await store.commit([{ put: stateKey, value: JSON.stringify(state) }])
}

function parse(stored: Buffer): State {
  return JSON.parse(stored.toString())
}
