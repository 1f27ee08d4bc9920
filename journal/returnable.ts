import type { Message } from '../event/message.ts'
import type { Store } from '../store/store.ts'
import { everyPrefix, positionIn, readIndexEntry } from './entry.ts'

export type Returnable = Awaited<ReturnType<typeof openReturnable>>

/** A message that a session which was away may still get. */
export interface Candidate {
  position: number
  topic: string
  qos: Message['qos']
  /** From this instant on nobody gets it any more, milliseconds since the epoch. */
  expires?: number | undefined
}

/** A candidate in its chains. They drop it some time after it is gone. */
interface Linked extends Candidate {
  isGone: boolean
}

/**
 * What sessions that were away may still get: of track and data topics the newest, of control events and reports all.
 * A returning session walks back from the newest and stops where it left. The topics with the same first level have a
 * chain, and so have the topics with the same first two levels. A session that listens to one livestream walks neither
 * over the reports nor over the other livestreams.
 */
export async function openReturnable(store: Store) {
  /** Control events and reports, by position. */
  const candidates = new Map<number, Linked>()
  const branches = createChains()
  const twigs = createChains()
  /** The newest of each other topic. Not by position: such a map would grow and shrink with each event. */
  const latest = new Map<string, Linked>()
  const stored: Candidate[] = []
  for await (const [key, value] of store.range(everyPrefix)) stored.push(readIndexEntry(key, value))
  for (const candidate of stored.sort((a, b) => a.position - b.position)) add(candidate)
  store.onOthers(everyPrefix, (change) => {
    if ('put' in change) add(readIndexEntry(change.put, change.value))
    else if ('del' in change) remove(positionIn(change.del))
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

    /** A control event or a report. */
    add,
    remove,

    /** The newest of a topic, in the place of the one before. */
    setLatest(candidate: Candidate): void {
      const before = latest.get(candidate.topic)
      if (before) drop(before)
      if (candidate.qos === 0) latest.delete(candidate.topic)
      else latest.set(candidate.topic, link(candidate))
    },

    /** A message is not the newest of its topic any more, and has no successor. */
    removeLatest(topic: string, position: number): void {
      const candidate = latest.get(topic)
      if (candidate?.position !== position) return
      latest.delete(topic)
      drop(candidate)
    },

    /** Removes what nobody gets any more as of `now`. */
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

  /** Chains that have no message in common. */
  function chainsOf(filters: Iterable<string>): Chain[] {
    const levels = [...filters].map((filter) => filter.split('/', 2))
    if (levels.some(([first]) => isOpen(first))) return [...branches.all()]
    const wide = new Set(levels.flatMap(([first = '', second]) => (isOpen(second) ? [first] : [])))
    const narrow = new Set(
      levels.flatMap(([first = '', second]) => (wide.has(first) ? [] : [`${first}/${second}`])),
    )
    return [...[...wide].flatMap(branches.named), ...[...narrow].flatMap(twigs.named)]
  }

  function add(candidate: Candidate): void {
    if (candidate.qos === 0 || candidates.has(candidate.position)) return
    candidates.set(candidate.position, link(candidate))
  }

  function link({ position, topic, qos, expires }: Candidate): Linked {
    const [inBranch, inTwig] = namesOf(topic)
    const twig = twigs.get(inTwig)
    // One text for all of a topic of two levels: there are tens of thousands of reports.
    const candidate = { position, topic: topic === inTwig ? twig.name : topic, qos, expires, isGone: false }
    branches.get(inBranch).add(candidate)
    twig.add(candidate)
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
    const [branch, twig] = namesOf(candidate.topic)
    branches.dropFrom(branch)
    twigs.dropFrom(twig)
  }
}

/** Chains by name; there are none without messages. */
function createChains() {
  const chains = new Map<string, Chain>()
  return {
    all: () => chains.values(),
    named: (name: string): Chain[] => {
      const chain = chains.get(name)
      return chain ? [chain] : []
    },
    /** The chain of a name, a new one if there is none. */
    get(name: string): Chain {
      const chain = chains.get(name) ?? createChain(name)
      chains.set(name, chain)
      return chain
    },
    /** One of its candidates is gone. */
    dropFrom(name: string): void {
      if (chains.get(name)?.drop() === 0) chains.delete(name)
    },
  }
}

type Chain = ReturnType<typeof createChain>

/**
 * Candidates in the order of their positions. An array whose candidates stay in it for a while when they are gone: linked
 * to each other, they took four times the memory, and the garbage collector followed each link.
 */
function createChain(name: string) {
  let inOrder: Linked[] = []
  let isSorted = true
  let gone = 0

  return {
    name,

    add(candidate: Linked): void {
      // What is added is nearly always the newest; at a start, everything once.
      isSorted &&= (inOrder.at(-1)?.position ?? 0) < candidate.position
      inOrder.push(candidate)
    },

    /** One of them is gone. Returns how many are left. */
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

/** Whether a level of a filter is open for many: there is none, or a wildcard. */
function isOpen(level: string | undefined): boolean {
  return level === undefined || level === '#' || level === '+'
}

/** The first level of a topic, and its first two levels. */
function namesOf(topic: string): [branch: string, twig: string] {
  const first = topic.indexOf('/')
  const second = first < 0 ? -1 : topic.indexOf('/', first + 1)
  return [first < 0 ? topic : topic.slice(0, first), second < 0 ? topic : topic.slice(0, second)]
}
