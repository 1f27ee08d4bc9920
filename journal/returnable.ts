import type { Message } from '../event/message.ts'
import type { Store } from '../store/store.ts'
import { type Chain, createChain, type Link } from './chain.ts'
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

/** The places of a candidate, in the chain of its first level and in that of its first two levels. */
interface Places {
  candidate: Candidate
  inBranch: Link<Candidate>
  inTwig: Link<Candidate>
}

/**
 * What sessions that were away may still get: of track and data topics the newest, of control events and reports all.
 * A returning session walks back from the newest and stops where it left. The topics with the same first level have a
 * chain, and so have the topics with the same first two levels. A session that listens to one livestream walks neither
 * over the reports nor over the other livestreams.
 */
export async function openReturnable(store: Store) {
  const places = new Map<number, Places>()
  const branches = createChains()
  const twigs = createChains()
  /** Positions by topic. */
  const latest = new Map<string, number>()
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
        for (const candidate of chain.fromNewest()) {
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
      if (before !== undefined) remove(before)
      latest.set(candidate.topic, candidate.position)
      add(candidate)
    },

    /** A message is not the newest of its topic any more, and has no successor. */
    removeLatest(topic: string, position: number): void {
      if (latest.get(topic) !== position) return
      latest.delete(topic)
      remove(position)
    },

    /** Removes what nobody gets any more as of `now`. */
    sweep(now: number): void {
      for (const [position, { candidate }] of places)
        if (candidate.expires !== undefined && candidate.expires <= now) remove(position)
    },
  }

  /** Chains that have no message in common. */
  function chainsOf(filters: Iterable<string>): Chain<Candidate>[] {
    const levels = [...filters].map((filter) => filter.split('/', 2))
    if (levels.some(([first]) => isOpen(first))) return [...branches.all()]
    const wide = new Set(levels.flatMap(([first = '', second]) => (isOpen(second) ? [first] : [])))
    const narrow = new Set(
      levels.flatMap(([first = '', second]) => (wide.has(first) ? [] : [`${first}/${second}`])),
    )
    return [...[...wide].flatMap(branches.named), ...[...narrow].flatMap(twigs.named)]
  }

  function add({ position, topic, qos, expires }: Candidate): void {
    if (qos === 0 || places.has(position)) return
    const candidate = { position, topic, qos, expires }
    const [branch, twig] = namesOf(topic)
    places.set(position, {
      candidate,
      inBranch: branches.add(branch, candidate),
      inTwig: twigs.add(twig, candidate),
    })
  }

  function remove(position: number): void {
    const place = places.get(position)
    if (!place) return
    places.delete(position)
    const [branch, twig] = namesOf(place.candidate.topic)
    branches.remove(branch, place.inBranch)
    twigs.remove(twig, place.inTwig)
  }
}

/** Chains by name; there are none without messages. */
function createChains() {
  const chains = new Map<string, Chain<Candidate>>()
  return {
    all: () => chains.values(),
    named: (name: string): Chain<Candidate>[] => {
      const chain = chains.get(name)
      return chain ? [chain] : []
    },
    add(name: string, candidate: Candidate): Link<Candidate> {
      const chain = chains.get(name) ?? createChain()
      chains.set(name, chain)
      return chain.add(candidate)
    },
    remove(name: string, link: Link<Candidate>): void {
      const chain = chains.get(name)
      chain?.remove(link)
      if (chain?.isEmpty()) chains.delete(name)
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
