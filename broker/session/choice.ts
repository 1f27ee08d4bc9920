import type { Entry } from '../../journal/entry.ts'
import { isPast } from '../../journal/retained-values.ts'
import type { Candidate } from '../../journal/returnable.ts'
import { lowerQos } from '../connection/frames.ts'
import type { Qos } from '../connection/protocol.ts'
import type { Access } from '../login/access.ts'
import type { Owed } from './in-flight.ts'
import type { Session, Subscription } from './session.ts'
import { createSubscriptions } from './subscriptions.ts'

/** The highest QoS of a session's filters that match a message; 0 if none matches. */
type Asks = (topic: string, position: number) => Qos

/** What decides whether a session gets a message: filters, permissions and time. */
export interface Terms {
  asks: Asks
  mayReceive: (topic: string) => boolean
  now: number
}

/**
 * Chooses the messages of a session that was away: owed ones, and candidates that match its filters (docs/decisions,
 * "The choice for a returning session is made once, at its log-in"). `dropped`: number of messages above the limits.
 */
export function choose(
  place: { upTo: number; owed: readonly Owed[] },
  /** Messages accepted after `place.upTo`, the newest first. */
  candidates: Iterable<Candidate>,
  { asks, mayReceive, now }: Terms,
  limits: Limits,
): { owed: Owed[]; dropped: number } {
  const chosen = new Map<number, Owed>()
  for (const candidate of candidates) {
    const { position, topic, qos, expires } = candidate
    if (isPast(expires, now)) continue
    const granted = lowerQos(asks(topic, position), qos)
    if (granted > 0 && mayReceive(topic)) chosen.set(position, owedOf(candidate, granted))
  }
  return withinLimits(inOrder(onePerPosition([...place.owed, ...chosen.values()])), limits)
}

/**
 * Keeps one message for each position. A message that an absent session is owed for itself, and as a retained value,
 * comes once, for itself: it has one identifier. `dup` if one of the two may have been sent.
 */
export function onePerPosition(all: readonly Owed[]): Owed[] {
  const byPosition = new Map<number, Owed>()
  for (const each of all) {
    const { position } = each
    const before = byPosition.get(position)
    // A message with an entry of its own in the store (QoS 2) stays as it was sent.
    const isReplaced = before?.retain && !before.stored && !each.retain
    if (before === undefined) byPosition.set(position, each)
    else if (isReplaced) byPosition.set(position, before.dup ? { ...each, dup: true } : each)
    else if (each.dup && !before.dup) byPosition.set(position, { ...before, dup: true })
  }
  return [...byPosition.values()]
}

export function inOrder(owed: Owed[]): Owed[] {
  return owed.sort((a, b) => a.position - b.position)
}

/** Sessions share the object to save memory: thousands may return at once, each with hundreds of messages. */
function owedOf(candidate: Candidate, qos: Qos): Owed {
  const known = owedAt[qos].get(candidate)
  if (known) return known
  const owed = { position: candidate.position, qos, retain: false, dup: false }
  owedAt[qos].set(candidate, owed)
  return owed
}

/** The objects of `owedOf`, which sessions share, by QoS. */
const owedAt: Record<Qos, WeakMap<Candidate, Owed>> = { 0: new WeakMap(), 1: new WeakMap(), 2: new WeakMap() }

/**
 * Whether the client still gets an owed message. A message that may have been sent needs no matching filter
 * [MQTT-3.10.4-3].
 */
export function isWanted(
  owed: Owed,
  { topic, queue }: Pick<Entry, 'topic' | 'queue'>,
  { asks, mayReceive, now }: Terms,
): boolean {
  // A SUBSCRIBE brings data values of any age, but no expired control event.
  const isOver = owed.retain ? isControlOver(queue, now) : isPast(queue.expires, now)
  const isAsked = owed.dup || asks(topic, owed.retain ? Infinity : owed.position) > 0
  return !isOver && isAsked && mayReceive(topic)
}

/** Whether a message is a control event that has expired. */
export function isControlOver({ keep, expires }: Entry['queue'], now: number): boolean {
  return keep === 'every' && isPast(expires, now)
}

/** Maximum numbers of owed messages: `waiting` for those never sent, `owed` for all. */
interface Limits {
  waiting: number
  owed: number
}

/**
 * Keeps all messages that may have been sent (`dup`), and puts them first. If the other messages exceed the limits,
 * drops some of these. Drops first the values that the session gets only through a SUBSCRIBE: the next SUBSCRIBE brings
 * them again. Then drops the oldest messages. `dropped`: number of dropped messages.
 */
export function withinLimits(all: readonly Owed[], limits: Limits): { owed: Owed[]; dropped: number } {
  const sent = all.filter(({ dup }) => dup)
  const waiting = all.filter(({ dup }) => !dup)
  const room = Math.max(0, Math.min(limits.waiting, limits.owed - sent.length))
  const byPriority = [...waiting.filter(({ retain }) => retain), ...waiting.filter(({ retain }) => !retain)]
  const kept = new Set(byPriority.slice(Math.max(0, waiting.length - room)))
  return { owed: [...sent, ...waiting.filter((each) => kept.has(each))], dropped: waiting.length - kept.size }
}

/**
 * Makes the `Asks` of a session. A filter matches only messages after its position `since`. The caller may use an
 * `Asks` for some time. If a filter ends during that time, it stops matching at once.
 */
export function asksOf(subscriptions: ReadonlyMap<string, Subscription>): Asks {
  const filters = createSubscriptions<string>()
  for (const [filter, { qos }] of subscriptions) if (qos > 0) filters.add(filter, filter, qos)
  return (topic, position) => {
    let highest: Qos = 0
    for (const filter of filters.match(topic).keys()) {
      const granted = subscriptions.get(filter)
      if (granted && granted.since < position && granted.qos > highest) highest = granted.qos
    }
    return highest
  }
}

export function termsOf(
  { subscriptions, principal }: Pick<Session, 'subscriptions' | 'principal'>,
  mayReceive: Access['mayReceive'],
  now: number,
): Terms {
  return { asks: asksOf(subscriptions), mayReceive: (topic) => mayReceive(principal, topic), now }
}
