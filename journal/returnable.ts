import type { Message } from '../event/message.ts'
import type { Store } from '../store/store.ts'
import { everyPrefix, positionIn, readIndexEntry } from './entry.ts'

export type Returnable = Awaited<ReturnType<typeof openReturnable>>

/** A message that a returning session may still get. */
export interface Candidate {
  position: number
  topic: string
  qos: Message['qos']
  /** From this instant on no session gets the message, milliseconds since the epoch. */
  expires?: number | undefined
}

/**
 * A candidate in its two chains (`openReturnable`). `isGone`: the candidate was removed, but the chains may still
 * contain it.
 */
interface Linked extends Candidate {
  isGone: boolean
}

/**
 * The messages that returning sessions may still get: the newest of each track or data topic, and all control events
 * and reports. Each message is in two chains: in `byFirst` by the first level of its topic, in `byFirstTwo` by the first
 * two. For a return, the node reads only the chains that the session's filters need, newest message first. Filters for
 * one livestream therefore cost no look at reports or other livestreams.
 */
export async function openReturnable(store: Store) {
  /** Control events and reports, by position. */
  const candidates = new Map<number, Linked>()
  const byFirst = createChains()
  const byFirstTwo = createChains()
  /**
   * The newest message of each track or data topic, by topic. With positions as keys, the map would grow and shrink
   * with each event, and burden the garbage collector.
   */
  const latest = new Map<string, Linked>()
  const stored: Candidate[] = []
  for await (const [key, value] of store.range(everyPrefix)) stored.push(readIndexEntry(key, value))
  for (const candidate of stored.sort((a, b) => a.position - b.position)) add(candidate)
  // A candidate of another node comes with its message (`add`).
  store.onOthers(everyPrefix, (key, value) => {
    if (!value) remove(positionIn(key))
  })

  return {
    /** Candidates after `position`, up to `upTo`, newest first. Some may match no filter: the caller checks. */
    since(position: number, filters: Iterable<string>, upTo = Infinity): Candidate[] {
      const found: Candidate[] = []
      for (const chain of chainsOf(filters)) {
        for (const candidate of chain.newestFirst()) {
          if (candidate.position <= position) break
          if (candidate.position <= upTo) found.push(candidate)
        }
      }
      return found.sort((a, b) => b.position - a.position)
    },

    /** Adds a control event or a report. */
    add,
    remove,

    /**
     * Sets the newest message of a topic. Returning sessions get no QoS 0 messages. If the newest message has QoS 0,
     * returning sessions get no message of this topic.
     */
    setLatest(candidate: Candidate): void {
      const before = latest.get(candidate.topic)
      if (before) drop(before)
      if (candidate.qos === 0) latest.delete(candidate.topic)
      else latest.set(candidate.topic, addToChains(candidate))
    },

    /** Removes the newest message of a topic if it is still the one at `position`. No older message replaces it. */
    removeLatest(topic: string, position: number): void {
      const candidate = latest.get(topic)
      if (candidate?.position !== position) return
      latest.delete(topic)
      drop(candidate)
    },

    /** Removes the candidates that have expired by `now`. */
    sweep(now: number): void {
      for (const [position, { expires }] of candidates)
        if (expires !== undefined && expires <= now) remove(position)
      for (const [topic, candidate] of latest) {
        if (candidate.expires === undefined || candidate.expires > now) continue
        latest.delete(topic)
        drop(candidate)
      }
    },
  }

  /** Chains that together cover the filters and have no message in common. */
  function chainsOf(filters: Iterable<string>): Chain[] {
    const levels = [...filters].map((filter) => filter.split('/', 2))
    if (levels.some(([first]) => isUnbounded(first))) return [...byFirst.all()]
    const wide = new Set(levels.flatMap(([first = '', second]) => (isUnbounded(second) ? [first] : [])))
    const narrow = new Set(
      levels.flatMap(([first = '', second]) => (wide.has(first) ? [] : [`${first}/${second}`])),
    )
    return [...[...wide].flatMap(byFirst.named), ...[...narrow].flatMap(byFirstTwo.named)]
  }

  function add(candidate: Candidate): void {
    if (candidate.qos === 0 || candidates.has(candidate.position)) return
    candidates.set(candidate.position, addToChains(candidate))
  }

  function addToChains({ position, topic, qos, expires }: Candidate): Linked {
    const [first, firstTwo] = namesOf(topic)
    const chain = byFirstTwo.get(firstTwo)
    // To save memory, all candidates of a two-level topic share one string: tens of thousands of reports have such
    // topics.
    const candidate = {
      position,
      topic: topic === firstTwo ? chain.name : topic,
      qos,
      expires,
      isGone: false,
    }
    byFirst.get(first).add(candidate)
    chain.add(candidate)
    return candidate
  }

  function remove(position: number): void {
    const candidate = candidates.get(position)
    if (!candidate) return
    candidates.delete(position)
    drop(candidate)
  }

  function drop(candidate: Linked): void {
    candidate.isGone = true
    const [first, firstTwo] = namesOf(candidate.topic)
    byFirst.dropFrom(first)
    byFirstTwo.dropFrom(firstTwo)
  }
}

/** Chains by name. A chain without messages is removed. */
function createChains() {
  const chains = new Map<string, Chain>()
  return {
    all: () => chains.values(),
    named: (name: string): Chain[] => {
      const chain = chains.get(name)
      return chain ? [chain] : []
    },
    /** The chain with this name. If there is none, makes a new one. */
    get(name: string): Chain {
      const chain = chains.get(name) ?? createChain(name)
      chains.set(name, chain)
      return chain
    },
    /** Counts one candidate of the chain as gone. */
    dropFrom(name: string): void {
      if (chains.get(name)?.drop() === 0) chains.delete(name)
    },
  }
}

type Chain = ReturnType<typeof createChain>

/**
 * An array of candidates in the order of their positions. Removed candidates stay for a while. A linked list took four
 * times the memory, and burdened the garbage collector.
 */
function createChain(name: string) {
  let inOrder: Linked[] = []
  let isSorted = true
  let gone = 0

  return {
    name,

    add(candidate: Linked): void {
      // At its start, the node may load candidates out of order: then `newestFirst` sorts them once.
      isSorted &&= (inOrder.at(-1)?.position ?? 0) < candidate.position
      inOrder.push(candidate)
    },

    /** Counts one candidate as gone. Returns how many are left. */
    drop(): number {
      gone++
      while (inOrder.at(-1)?.isGone) {
        inOrder.pop()
        gone--
      }
      if (gone * 2 > inOrder.length) {
        inOrder = inOrder.filter(({ isGone }) => !isGone)
        gone = 0
      }
      return inOrder.length - gone
    },

    *newestFirst(): Generator<Candidate> {
      if (!isSorted) inOrder.sort((a, b) => a.position - b.position)
      isSorted = true
      for (let index = inOrder.length - 1; index >= 0; index--) {
        const candidate = inOrder[index]
        if (candidate && !candidate.isGone) yield candidate
      }
    },
  }
}

/** Whether a level of a filter is a wildcard or missing. */
function isUnbounded(level: string | undefined): boolean {
  return level === undefined || level === '#' || level === '+'
}

/** The first level of a topic, and its first two levels. */
function namesOf(topic: string): [first: string, firstTwo: string] {
  const first = topic.indexOf('/')
  const second = first < 0 ? -1 : topic.indexOf('/', first + 1)
  return [first < 0 ? topic : topic.slice(0, first), second < 0 ? topic : topic.slice(0, second)]
}
