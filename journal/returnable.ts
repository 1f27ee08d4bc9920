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

interface Link extends Candidate {
  before: Link | undefined
  behind: Link | undefined
}

/** Messages in the order of positions. */
interface Chain {
  oldest: Link | undefined
  newest: Link | undefined
}

/**
 * What sessions that were away may still get: of track and data topics the newest, of control events and reports all.
 * Linked in the order of positions, so that a returning session walks back from the newest and stops where it left. Each
 * first level of the topics has a chain of its own: who listens to the radio does not walk over the reports.
 */
export async function openReturnable(store: Store) {
  const links = new Map<number, Link>()
  const chains = new Map<string, Chain>()
  /** Positions by topic. */
  const latest = new Map<string, number>()
  const stored: Candidate[] = []
  for await (const [key, value] of store.range(everyPrefix)) stored.push(readIndexEntry(key, value))
  for (const candidate of stored.sort((a, b) => a.position - b.position)) add(candidate)
  store.watch?.(everyPrefix, (change) => {
    if ('put' in change) add(readIndexEntry(change.put, change.value))
    else if ('del' in change) remove(positionIn(change.del))
  })

  return {
    /** What matches one of these filters, perhaps, behind a position and not behind another one, the newest first. */
    since(position: number, filters: Iterable<string>, upTo = Infinity): Candidate[] {
      const found: Candidate[] = []
      for (const { newest } of chainsOf(filters)) {
        for (let link = newest; link && link.position > position; link = link.before) {
          if (link.position <= upTo) found.push(link)
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
      for (const { position, expires } of links.values())
        if (expires !== undefined && expires <= now) remove(position)
    },
  }

  function chainsOf(filters: Iterable<string>): Iterable<Chain> {
    const roots = new Set([...filters].map(rootOf))
    if (roots.has('#') || roots.has('+')) return chains.values()
    return [...roots].flatMap((root) => chains.get(root) ?? [])
  }

  function add(candidate: Candidate): void {
    if (candidate.qos === 0 || links.has(candidate.position)) return
    const { position, topic, qos, expires } = candidate
    const chain = chains.get(rootOf(topic)) ?? { oldest: undefined, newest: undefined }
    chains.set(rootOf(topic), chain)
    let before = chain.newest
    // It nearly always is the newest.
    while (before && before.position > position) before = before.before
    const behind = before ? before.behind : chain.oldest
    const link: Link = { position, topic, qos, expires, before, behind }
    links.set(position, link)
    if (before) before.behind = link
    else chain.oldest = link
    if (behind) behind.before = link
    else chain.newest = link
  }

  function remove(position: number): void {
    const link = links.get(position)
    const root = link && rootOf(link.topic)
    const chain = root === undefined ? undefined : chains.get(root)
    if (!link || root === undefined || !chain) return
    links.delete(position)
    const { before, behind } = link
    if (before) before.behind = behind
    else chain.oldest = behind
    if (behind) behind.before = before
    else chain.newest = before
    if (!chain.newest) chains.delete(root)
  }
}

/** The first level of a topic or filter. */
function rootOf(topic: string): string {
  const end = topic.indexOf('/')
  return end < 0 ? topic : topic.slice(0, end)
}
