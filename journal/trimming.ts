import type { Store } from '../store/store.ts'
import { createCounting } from './counting.ts'
import {
  type Entry,
  everyPrefix,
  journalPrefix,
  latestPrefix,
  padded,
  positionIn,
  readEntry,
} from './entry.ts'
import type { Journal } from './journal.ts'
import {
  isHistory,
  type KeepingLimits,
  moveWindow,
  type Reach,
  streamBytesOf,
  type WindowPart,
} from './keeping.ts'
import { createRemoving } from './removing.ts'
import type { RetainedMessages } from './retained.ts'
import type { Returnable } from './returnable.ts'

export type Trimming = Awaited<ReturnType<typeof openTrimming>>

/** Messages on a page: they have left the window, and their streams are looked at together. */
const pageSize = 10_000
/** A page ends at 1/128 of the history limit, but not below `minPageBytes`. */
const pagesOfHistory = 128
const minPageBytes = 16 * 1024
/** Messages that are counted in one sweep. */
const maxCounted = 200_000
/** In one sweep, this many messages that left the window are looked at. As many are read to shorten the history. */
const maxPassed = 100_000
/** In one sweep, the round ends after this many streams, or after this many entries of their indexes. */
const again = { streams: 100, entries: 5_000 }

const prefix = 'trimming/'
const stateKey = `${prefix}state`

/** How far the trimming has got. After a crash the stored state may be older; to repeat a part loses nothing. */
interface State {
  window: WindowPart[]
  /** The whole journal is kept from this position on. */
  floor: number
  /** Messages before this position have left the window and were looked at. */
  passed: number
  /** Events before this position are no history. */
  historyFrom: number
  /** Bytes of the history up to `passed`. Each round counts them anew. */
  historyBytes: number
  /** The round over all streams: the key at which it continues, and the bytes of history it has counted. */
  round: { at: string; bytes: number }
}

/**
 * Removes messages that the journal no longer keeps. One node does this in bounded pieces, and stores how far it has
 * got. So a node reads no messages at its start. The node that trims has three numbers for each stream in memory.
 *
 * A sweep looks at the streams of messages that have left the window, and shortens the streams with the most history.
 * If there is still too much history, the sweep removes the oldest. Then it visits some other streams, because messages
 * expire even in streams without new messages. At its end it moves the window.
 * The window begins at the floor. All nodes have heard of the floor before a message below it is removed.
 */
export async function openTrimming(parts: {
  store: Store
  /** Whether this node is the one that trims the journal, of all nodes that share the store. */
  isLeader: () => boolean
  journal: Journal
  retained: RetainedMessages
  returnable: Returnable
  limits: KeepingLimits
  clock: () => number
}) {
  const { store, isLeader, journal, retained, returnable, limits, clock } = parts
  const counting = createCounting(store)
  const removing = createRemoving({ store, journal, retained, returnable, inWindow: counting.of, limits })
  let running: Promise<void> | undefined
  let isClosed = false
  journal.raiseFloor((await readState(store)).floor)
  store.onOthers(prefix, (change) => {
    if ('put' in change) journal.raiseFloor(parse(change.value).floor)
  })

  return {
    /** Removes some of the messages that are no longer kept. */
    async sweep(): Promise<void> {
      returnable.sweep(clock())
      if (!isLeader() || running || isClosed) return
      running = trim().finally(() => {
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
    const { upTo, bytes } = await counting.advance(head, state.window.at(-1)?.upTo ?? 0, maxCounted)
    // Removes only when the whole window is counted, which takes some sweeps if this node has just begun to trim.
    if (upTo >= head) state = await remove(state)
    const { parts: window, passed } = moveWindow(state.window, { bytes, head: upTo }, limits, clock())
    state = { ...state, window, floor: Math.max(state.floor, passed + 1) }
    await writeState(store, state)
    journal.raiseFloor(state.floor)
  }

  async function remove(before: State): Promise<State> {
    let state = before
    // Stops at the floor that this node has heard in commit order, so it knows all values that others retained before.
    const floor = Math.min(state.floor, journal.floor())
    while (state.passed < floor && state.passed < before.passed + maxPassed && !isClosed) {
      state = await lookAtPassed(state, floor)
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

  /** Looks at the streams of a page of messages that have left the window. */
  async function lookAtPassed(state: State, floor: number): Promise<State> {
    // The page is small, because the share of a livestream is computed only once for each page.
    const most = Math.max(minPageBytes, limits.historyBytes / pagesOfHistory)
    const { entries, end: passed } = await readStretch(store, state.passed, floor, most)
    counting.left(entries, passed)
    const { added, removed } = await look(streamsOf(entries), { ...state, passed }, state.passed)
    return { ...state, passed, historyBytes: Math.max(0, state.historyBytes + added - removed) }
  }

  /** Takes the oldest events out of the history until the rest is within the limit. */
  async function shorten(state: State): Promise<State> {
    const most = state.historyBytes - limits.historyBytes
    const { entries, end, historyBytes } = await readStretch(store, state.historyFrom, state.passed, most)
    // If the stretch ends at `passed`, it has taken out all history.
    const left = end === state.passed ? 0 : Math.max(0, state.historyBytes - historyBytes)
    const shortened = { ...state, historyFrom: end, historyBytes: left }
    const { removed } = await look(streamsOf(entries), shortened, state.passed)
    return { ...shortened, historyBytes: Math.max(0, shortened.historyBytes - removed) }
  }

  /** Looks at the next streams, even without new messages there. The end of the round corrects `historyBytes`. */
  async function goRound(state: State): Promise<State> {
    let { historyBytes } = state
    let { at, bytes } = state.round
    for (
      let streams = 0, entries = 0;
      streams < again.streams && entries < again.entries && !isClosed;
      streams++
    ) {
      const next = await streamAfter(store, at)
      if (!next) return { ...state, historyBytes: bytes, round: { at: '', bytes: 0 } }
      const { kept, removed, read, hasLatest } = await look([next.stream], state, state.passed)
      // A stream with both kinds of messages has two indexes. It is visited twice and counts once.
      if (next.isLatest || !hasLatest) bytes += kept
      historyBytes = Math.max(0, historyBytes - removed)
      entries += read
      at = next.behind
    }
    return { ...state, historyBytes, round: { at, bytes } }
  }

  /** Removes messages of these streams up to `passed`. `before`: where the window began at the last look. */
  function look(streams: Iterable<string>, state: State, before: number) {
    return removing.look(streams, reachOf(state, limits, clock()), before)
  }
}

function reachOf({ passed, historyFrom, historyBytes }: State, limits: KeepingLimits, now: number): Reach {
  return { window: passed, historyFrom, streamBytes: streamBytesOf(limits, historyBytes), now }
}

/**
 * Reads the messages from one position up to just before another one, without payloads. Stops when a page is full, or
 * after `most` bytes of history. The returned `end`: the result has all messages before this position.
 */
async function readStretch(store: Store, from: number, end: number, most: number) {
  const entries: Entry[] = []
  let historyBytes = 0
  for await (const [key, value] of store.range(journalPrefix, { from: padded(from), before: padded(end) })) {
    const position = positionIn(key)
    if (entries.length === pageSize || historyBytes >= most) {
      return { entries, historyBytes, end: (entries.at(-1)?.position ?? 0) + 1 }
    }
    const { entry } = readEntry(position, value)
    entries.push({ ...entry, payload: noPayload })
    if (isHistory(entry)) historyBytes += value.length
  }
  return { entries, historyBytes, end }
}

/** The stream whose index comes next after a key. The indexes of `every/` come first, then those of `latest/`. */
async function streamAfter(
  store: Store,
  at: string,
): Promise<{ stream: string; isLatest: boolean; behind: string } | undefined> {
  for (const indexed of [everyPrefix, latestPrefix]) {
    if (at > indexed && !at.startsWith(indexed)) continue
    const from = at.startsWith(indexed) ? at.slice(indexed.length) : ''
    for await (const [key] of store.range(indexed, { from, most: 1 })) {
      const name = key.slice(indexed.length, key.lastIndexOf('/'))
      // `behind` sorts after all keys that begin with the name and a slash: `0` follows `/`.
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
