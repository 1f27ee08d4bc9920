import type { Entry } from '../../journal/entry.ts'
import type { Candidate } from '../../journal/returnable.ts'
import { lowerQos, type Qos } from '../connection/wire.ts'
import type { Access } from '../login/access.ts'
import type { Owed } from './in-flight.ts'
import type { Session, Subscription } from './session.ts'
import { createSubscriptions } from './subscriptions.ts'

/** The highest QoS at which the filters of a session ask for a message; 0 if no filter above QoS 0 does. */
export type Asks = (topic: string, position: number) => Qos

/** The terms on which a session gets a message. */
export interface Terms {
  asks: Asks
  mayReceive: (topic: string) => boolean
  now: number
}

/**
 * The messages of a session that was away: those it was owed, and the newer candidates that its filters ask for
 * (docs/decisions.md, "Sessions and returns"). Above the limits, the oldest that were never sent are dropped; `dropped`
 * is their number.
 */
export function choose(
  place: { upTo: number; owed: readonly Owed[] },
  /** Messages accepted since, the newest first. */
  candidates: Iterable<Candidate>,
  { asks, mayReceive, now }: Terms,
  limits: Limits,
): { owed: Owed[]; dropped: number } {
  const known = new Set(place.owed.map(({ position }) => position))
  const chosen = new Map<number, Owed>()
  for (const candidate of candidates) {
    const { position, topic, qos, expires } = candidate
    if (isPast(expires, now)) continue
    const granted = lowerQos(asks(topic, position), qos)
    if (granted > 0 && mayReceive(topic)) chosen.set(position, owedOf(candidate, granted))
  }
  const owed = place.owed.map((each) =>
    // A SUBSCRIBE asked for this retained message. The session would get it without that, too.
    each.retain && chosen.has(each.position) ? { ...each, isChosen: true } : each,
  )
  const added = [...chosen.values()].filter(({ position }) => !known.has(position))
  return withinLimits(
    [...owed, ...added].sort((a, b) => a.position - b.position),
    limits,
  )
}

/** One object for all sessions: thousands come back at once, and each is owed hundreds of messages. */
function owedOf(candidate: Candidate, qos: Qos): Owed {
  const known = owedAt[qos].get(candidate)
  if (known) return known
  const owed = { position: candidate.position, qos, retain: false, dup: false }
  owedAt[qos].set(candidate, owed)
  return owed
}

/** The objects that sessions share, by QoS. */
const owedAt: Record<Qos, WeakMap<Candidate, Owed>> = { 0: new WeakMap(), 1: new WeakMap(), 2: new WeakMap() }

/**
 * Whether the client still gets a message that it is owed. A message that may have been sent needs no matching filter
 * any more.
 */
export function isWanted(
  owed: Owed,
  { topic, queue }: Pick<Entry, 'topic' | 'queue'>,
  { asks, mayReceive, now }: Terms,
): boolean {
  // A SUBSCRIBE brings the value of a data topic however old it is.
  const isOver = owed.retain ? isControlOver(queue, now) : isPast(queue.expires, now)
  const isAsked = owed.dup || asks(topic, owed.retain ? Infinity : owed.position) > 0
  return !isOver && isAsked && mayReceive(topic)
}

/** Whether a message is a control event that is valid no more. */
export function isControlOver({ keep, expires }: Entry['queue'], now: number): boolean {
  return keep === 'every' && isPast(expires, now)
}

function isPast(time: number | undefined, now: number): boolean {
  return time !== undefined && time <= now
}

/** How much a session may be owed: messages that were never sent, and all together. */
export interface Limits {
  waiting: number
  owed: number
}

/**
 * Keeps messages that may have been sent, and puts them first. Of the others it drops first the values of a SUBSCRIBE,
 * because the next SUBSCRIBE brings them again, and then the oldest. `dropped` is the number of dropped messages.
 */
export function withinLimits(all: readonly Owed[], limits: Limits): { owed: Owed[]; dropped: number } {
  const sent = all.filter(({ dup }) => dup)
  const waiting = all.filter(({ dup }) => !dup)
  const room = Math.max(0, Math.min(limits.waiting, limits.owed - sent.length))
  const isBrought = ({ retain, isChosen }: Owed) => retain && !isChosen
  const byPriority = [...waiting.filter(isBrought), ...waiting.filter((each) => !isBrought(each))]
  const kept = new Set(byPriority.slice(Math.max(0, waiting.length - room)))
  return { owed: [...sent, ...waiting.filter((each) => kept.has(each))], dropped: waiting.length - kept.size }
}

/** Makes the `asks` of a session: each filter asks for the messages that were accepted after it was granted. */
export function asksOf(subscriptions: ReadonlyMap<string, Subscription>): Asks {
  const filters = createSubscriptions<Subscription>()
  for (const [filter, subscription] of subscriptions) {
    if (subscription.qos > 0) filters.add(filter, subscription, subscription.qos)
  }
  return (topic, position) => {
    let highest: Qos = 0
    for (const [{ since }, qos] of filters.match(topic)) if (since < position && qos > highest) highest = qos
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
