/*
 * What each persistent session must get, as the journal promises it. It knows messages, filters and moments; of the hub
 * it knows nothing. Every rule is a function of where a message stands for a session; all rules are on this page.
 */

/** A message that was published. Its number is its place in the order of acceptance. */
export interface Event {
  number: number
  topic: string
  /** `latest` is retained: only the newest by event time waits for a session that is away. */
  keep: 'latest' | 'every'
  /** Event time. */
  time: number
  /** From this moment on it is not valid. */
  expires?: number
  qos: 1 | 2
  /** Perhaps: the node crashed before it answered. */
  accepted: 'yes' | 'not yet' | 'perhaps'
}

export interface Filter {
  qos: 0 | 1 | 2
  /** Number of the first event that it counts for. */
  since: number
}

/** What a session has of a message, or still has to get. */
export type Standing =
  | { is: 'never'; why: Reason }
  /** Its session is away; this is what is chosen from when it comes back. */
  | { is: 'waits'; choice: 'newest' | 'newest, perhaps all' | 'all' | 'perhaps' }
  | { is: 'must' }
  /** `isQos0`: only in this connection, and not above QoS 0. */
  | { is: 'may'; isQos0?: true }
  /** Received, and not acknowledged; `isOwed`: it comes again with the next connection. */
  | { is: 'sent'; isOwed: boolean }
  /** `isKnown`: the node has seen the acknowledgement. */
  | { is: 'acknowledged'; isKnown: boolean; at: number }

type Reason = 'no filter' | 'filter removed' | 'QoS 0' | 'superseded' | 'expired' | 'acknowledged'

export interface Moment {
  now: number
  events: readonly Event[]
}

/** An event is accepted. A connected session gets all of them, also those with an old event time. */
export function whenAccepted(event: Event, filters: Filters, isConnected: boolean): Standing {
  const granted = [...filters].filter(([filter]) => matches(filter, event.topic)).map(([, { qos }]) => qos)
  if (granted.length === 0) return { is: 'never', why: 'no filter' }
  if (Math.max(...granted) === 0)
    return isConnected ? { is: 'may', isQos0: true } : { is: 'never', why: 'QoS 0' }
  return isConnected ? { is: 'must' } : { is: 'waits', choice: 'newest' }
}

/** The connection ends. What was not received may have been on its way: then it is owed, superseded or not. */
export function whenLeft(standing: Standing): Standing {
  if (standing.is === 'must') return { is: 'waits', choice: 'newest, perhaps all' }
  if (standing.is !== 'may') return standing
  return standing.isQos0 ? { is: 'never', why: 'QoS 0' } : { is: 'waits', choice: 'perhaps' }
}

/** The session comes back: what is owed, and a choice from what waited. It is made once. */
export function whenReturned(standing: Standing, event: Event, moment: Moment): Standing {
  if (standing.is === 'acknowledged') {
    return standing.isKnown ? { is: 'never', why: 'acknowledged' } : { is: 'may' }
  }
  if (standing.is !== 'sent' && standing.is !== 'waits') return standing
  if (isOver(event, moment.now)) {
    const isSure = event.keep === 'every' ? event.qos === 1 || standing.is === 'waits' : isUnsent(standing)
    return isSure ? { is: 'never', why: 'expired' } : { is: 'may' }
  }
  if (standing.is === 'sent') return { is: standing.isOwed ? 'must' : 'may' }
  if (standing.choice === 'perhaps') return { is: 'may' }
  const newest = event.keep === 'every' || standing.choice === 'all' ? 'yes' : isNewest(event, moment)
  // Accepted after the log-in, it comes also where it is not the newest.
  if (event.accepted === 'perhaps') return { is: 'may' }
  if (newest === 'yes') return { is: 'must' }
  if (newest === 'no' && standing.choice === 'newest') return { is: 'never', why: 'superseded' }
  return { is: 'may' }
}

/** Filters were removed or lowered to QoS 0: what was not begun ends. */
export function whenFiltersChanged(standing: Standing, event: Event, filters: Filters): Standing {
  if (standing.is !== 'must' || counts(event, filters)) return standing
  return { is: 'never', why: 'filter removed' }
}

/**
 * The node crashes, with the session connected, or so shortly after it left that this may not be stored. All of the
 * connection goes out again, unconflated, where a filter still counts for it. `isRecent`: acknowledged within the time
 * for which a node may forget.
 */
export function whenCrashed(
  standing: Standing,
  event: Event,
  session: { filters: Filters; wasConnected: boolean; cameBySubscribe: boolean; wasQos2: boolean },
  isRecent: (at: number) => boolean,
): Standing {
  const isCounted = counts(event, session.filters)
  switch (standing.is) {
    case 'must':
      return isCounted ? { is: 'waits', choice: 'all' } : { is: 'waits', choice: 'perhaps' }
    case 'may':
      return standing.isQos0 && !isCounted
        ? { is: 'never', why: 'QoS 0' }
        : { is: 'waits', choice: 'perhaps' }
    case 'waits':
      return session.wasConnected || standing.choice !== 'newest'
        ? standing
        : { is: 'waits', choice: 'newest, perhaps all' }
    case 'sent':
      // QoS 2 is stored before it is sent; at QoS 1 what SUBSCRIBE brought within the last second is not promised.
      return {
        is: 'sent',
        isOwed: standing.isOwed && (session.wasQos2 || (isCounted && !session.cameBySubscribe)),
      }
    case 'acknowledged':
      return isRecent(standing.at) ? { ...standing, isKnown: false } : standing
    case 'never':
      // Its filter may have been raised since; whether that counts from before is not promised.
      return standing.why === 'QoS 0' ? { is: 'waits', choice: 'perhaps' } : standing
  }
}

/**
 * What a SUBSCRIBE brings of the retained values: each, unless the session has it in flight; at QoS 2 it may be until
 * the last acknowledgement is stored.
 */
export function broughtBySubscribe(
  event: Event,
  { standing, qos: receivedAt }: { standing: Standing; qos: number },
  granted: ReadonlyMap<string, 0 | 1 | 2>,
  moment: Moment,
): 'must' | 'may' | 'never' {
  const qos = [...granted].filter(([filter]) => matches(filter, event.topic)).map(([, each]) => each)
  if (qos.length === 0 || event.keep === 'every' || isOver(event, moment.now)) return 'never'
  const newest = isNewest(event, moment)
  if (newest === 'no') return 'never'
  if (qos.includes(0)) return 'may'
  if (standing.is === 'sent') return standing.isOwed ? 'never' : 'may'
  const isOnItsWay = standing.is === 'must' || standing.is === 'may'
  const isUncertain = standing.is === 'acknowledged' && !standing.isKnown
  const isAtQos2 = receivedAt === 2 && standing.is === 'acknowledged'
  const isOpen = newest === 'perhaps' || isOnItsWay || isUncertain || isAtQos2
  return isOpen || event.accepted !== 'yes' ? 'may' : 'must'
}

/** An event that is not acknowledged yet was accepted before something happened to the session, or after it. */
export function eitherWay(before: Standing, after: Standing): Standing {
  if (before.is === 'sent' || before.is === 'acknowledged') return before
  if (JSON.stringify(before) === JSON.stringify(after)) return before
  const all = [before, after]
  const waiting = all.flatMap((each) => (each.is === 'waits' ? [each] : []))
  if (waiting.length === 0) return { is: 'may' }
  const isNone = waiting.length < all.length || waiting.some(({ choice }) => choice === 'perhaps')
  return { is: 'waits', choice: isNone ? 'perhaps' : 'newest, perhaps all' }
}

/** What is wrong with a PUBLISH that a session receives. */
export function wrongWith(
  packet: { qos: 0 | 1 | 2; dup: boolean; retain: boolean; packetId: number },
  event: Event,
  known: {
    standing: Standing
    /** How often the session received it before at QoS 1 and 2, and in this connection. */
    received: number
    receivedHere: boolean
    /** Its identifier, if the session received it before, or another did. */
    packetId: number | undefined
    packetIdElsewhere: number | undefined
    isBroughtBySubscribe: boolean
    /** It was accepted after the log-in of this connection. */
    isNew: boolean
    /** The application got it at QoS 2 before, and gets it now. */
    isSecondAtQos2: boolean
  },
): string[] {
  const { standing } = known
  const wrong: string[] = []
  if (packet.qos > event.qos) wrong.push(`QoS ${packet.qos} of ${event.qos}`)
  const { packetId, packetIdElsewhere = packet.packetId } = known
  if (packet.qos > 0 && (packetId ?? packetIdElsewhere) !== packet.packetId) {
    const whose = packetId === undefined ? 'another session got it under' : 'in place of'
    wrong.push(`identifier ${packet.packetId}, ${whose} ${packetId ?? packetIdElsewhere}`)
  }
  if (known.isBroughtBySubscribe && packet.retain && !packet.dup) return wrong
  if (known.isSecondAtQos2) wrong.push('QoS 2 twice')
  if (standing.is === 'never') wrong.push(`must not come: ${standing.why}`)
  if (standing.is === 'may' && standing.isQos0 && packet.qos > 0) wrong.push('more QoS than was granted')
  if (standing.is === 'must' && packet.qos === 0) wrong.push('QoS 0 though more was granted')
  if (known.receivedHere && !packet.dup) wrong.push('twice in one connection')
  else if (standing.is === 'acknowledged' && standing.isKnown) wrong.push('again after its acknowledgement')
  if (known.received > 0 && !packet.dup && !known.receivedHere) wrong.push('again without DUP')
  if (known.received === 0 && packet.dup && known.isNew) wrong.push('DUP, and it is new')
  if (known.received === 0 && packet.retain && !packet.dup) wrong.push('retain, and no SUBSCRIBE')
  return wrong
}

/** A message above QoS 0 as it comes in a connection. */
export interface Arrival {
  number: number
  qos: number
  /** The session had it before. */
  isOwed: boolean
}

/**
 * Whether a message comes in the wrong place: what is owed in the order of acceptance; then what was chosen; then what
 * was accepted since the log-in, in the order of acceptance for each QoS [MQTT-4.6.0-6]. `before`: what came in this
 * connection. `leftAt` and `cameAt`: how many events there were.
 */
export function isOutOfOrder(
  event: Arrival,
  before: readonly Arrival[],
  { leftAt, cameAt }: { leftAt: number; cameAt: number },
): boolean {
  return before.some(({ number, qos, isOwed }) => {
    if (isOwed !== event.isOwed) return event.isOwed && number >= leftAt
    return number > event.number && (qos === event.qos || event.number < cameAt)
  })
}

type Filters = ReadonlyMap<string, Filter>

/** Whether a filter above QoS 0 was granted before the event. */
function counts(event: Event, filters: Filters): boolean {
  return [...filters].some(
    ([filter, { qos, since }]) => qos > 0 && since <= event.number && matches(filter, event.topic),
  )
}

/** Whether it is the retained value of its topic. */
function isNewest(event: Event, { now, events }: Moment): 'yes' | 'perhaps' | 'no' {
  const newer = events.filter(
    ({ topic, time, number }) =>
      topic === event.topic && (time > event.time || (time === event.time && number > event.number)),
  )
  if (newer.some((other) => other.accepted === 'yes' && !isOver(other, now))) return 'no'
  return newer.length > 0 ? 'perhaps' : 'yes'
}

function isOver({ expires }: Event, now: number): boolean {
  return expires !== undefined && expires <= now
}

/** Whether it is certain that it was never on its way. */
function isUnsent(standing: Standing): boolean {
  return standing.is === 'waits' && standing.choice === 'newest'
}

/** As MQTT has it [MQTT-4.7.1]. */
export function matches(filter: string, topic: string): boolean {
  const [levels, wanted] = [topic.split('/'), filter.split('/')]
  const isOpenEnded = wanted.at(-1) === '#'
  if (isOpenEnded) wanted.pop()
  if (isOpenEnded ? levels.length < wanted.length : levels.length !== wanted.length) return false
  return wanted.every((level, index) => level === '+' || level === levels[index])
}
