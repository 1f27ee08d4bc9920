/*
 * Rules for the messages that a persistent session must get (docs/decisions/05-returning-sessions.md). They use no
 * code of the hub. Most rules return the next standing of a message.
 */

/** `number`: the place of the message in the order of acceptance, from 0. */
export interface Event {
  number: number
  topic: string
  /** `latest`: a retained value. Only the newest by event time waits for a session that is away. */
  keep: 'latest' | 'every'
  /** Event time, milliseconds since the epoch. */
  time: number
  /** From this time on the event is not valid, milliseconds since the epoch. */
  expires?: number
  qos: 1 | 2
  /** Whether the hub has accepted the event. `perhaps`: the node crashed before it answered. */
  accepted: 'yes' | 'not yet' | 'perhaps'
  /** At each trimming so far, the rules of the stream kept the event (`isKeptNow`). */
  isKept: boolean
  /** The journal was not trimmed since the event, so the journal has the event. */
  isWhole: boolean
}

/** The limits of the journal and of each session. */
export interface Bounds {
  /** Bytes of the newest messages of all streams, which the journal always keeps. */
  windowBytes: number
  /** Number of newest events that the journal keeps of a stream. */
  history: number
  /** Maximum number of valid control events per stream, and of unsent messages per session. */
  queueLimit: number
  /** Maximum number of messages owed to a session, sent or not. */
  maxOwed: number
  /** Number of unacknowledged messages: the hub sends at least `inFlightWindow`, and at most `maxInFlight`. */
  inFlightWindow: number
  maxInFlight: number
  /** Number of owed messages that a node stores in one value; for other sessions, their own records count. */
  maxListed: number
}

export interface Filter {
  qos: 0 | 1 | 2
  /** Number of the first event that the filter certainly counts for. */
  since: number
  /**
   * Number of the first event that the filter perhaps counts for. Events from here to `since` were on their way when
   * the hub granted the filter.
   */
  perhapsSince: number
}

/** Whether a session must get, may get or has got a message. */
export type Standing =
  /**
   * The message must not come. `wasChosen`: the hub chose the message at a return, but the filter ended before the
   * message came.
   */
  | { is: 'never'; why: Reason; wasChosen?: boolean }
  /**
   * The session is away.
   * - `choice`: how the hub chooses at the return
   * - `isUnsent`: the hub certainly never sent the message
   * - `isAgain`: a crash may bring the message again
   */
  | { is: 'waits'; choice: Choice; isUnsent?: boolean; isAgain?: boolean }
  /**
   * The message must come. `isUnsent`, `isAgain`: as above.
   * - `isBehind`: the journal was trimmed while the message waited; the hub then chooses as at a return
   * - `isChosen`: the hub chose the message when the session came back
   * - `before`: the standing if the connection ends before the message comes
   */
  | {
      is: 'must'
      isUnsent?: boolean
      isBehind?: boolean
      isChosen?: boolean
      before?: Before
      isAgain?: boolean
    }
  /** The message may come. `isQos0`: in this connection only, at QoS 0. */
  | { is: 'may'; isQos0?: true; isAgain?: boolean }
  /**
   * The client has received the message.
   * - `isOwed`: the message comes again with the next connection
   * - `isRead`: a crash brings the message again, see the function `isRead`
   */
  | { is: 'sent'; isOwed: boolean; isRead?: boolean }
  /** The client acknowledged at `at` (`performance.now()`). `isKnown`: the node has read the acknowledgement. */
  | { is: 'acknowledged'; isKnown: boolean; at: number }

type Choice = 'newest' | 'newest, perhaps all' | 'all' | 'perhaps'

type Before = Extract<Standing, { is: 'sent' | 'waits' }>

type Reason =
  | 'no filter'
  | 'filter removed'
  | 'QoS 0'
  | 'superseded'
  | 'expired'
  | 'acknowledged'
  | 'over the limit'

export interface Moment {
  now: number
  events: readonly Event[]
}

/** The livestream of an event, or undefined for a report. */
export function streamOf({ topic, keep, expires }: Pick<Event, 'topic' | 'keep' | 'expires'>) {
  return keep === 'every' && expires === undefined ? undefined : topic.split('/')[1]
}

/** Whether a trimmed journal keeps an event by the rules of its stream. */
export function isKeptNow(event: Event, moment: Moment, { history, queueLimit }: KeepingBounds): boolean {
  const stream = streamOf(event)
  if (stream === undefined) return true
  const newer = moment.events.filter((other) => streamOf(other) === stream && other.number > event.number)
  if (newer.length < history) return true
  if (event.keep === 'latest') return isNewest(event, moment) === 'yes'
  const valid = newer.filter((other) => other.keep === 'every' && !isOver(other, moment.now))
  return !isOver(event, moment.now) && valid.length < queueLimit
}

/** The hub accepts an event. A connected session gets every event, also one with an old event time. */
export function whenAccepted(event: Event, filters: Filters, isConnected: boolean): Standing {
  const granted = [...filters].filter(([filter]) => matches(filter, event.topic)).map(([, { qos }]) => qos)
  if (granted.length === 0) return { is: 'never', why: 'no filter' }
  if (Math.max(...granted) === 0)
    return isConnected ? { is: 'may', isQos0: true } : { is: 'never', why: 'QoS 0' }
  return isConnected ? { is: 'must' } : { is: 'waits', choice: 'newest' }
}

/** The connection ends. A message that was perhaps sent is owed, even if superseded. */
export function whenLeft(standing: Standing): Standing {
  if (standing.is === 'must') {
    if (standing.before) return standing.before
    return {
      is: 'waits',
      choice: 'newest, perhaps all',
      ...(standing.isUnsent && { isUnsent: true }),
      ...(standing.isAgain && { isAgain: true }),
    }
  }
  if (standing.is !== 'may') return standing
  return standing.isQos0 ? { is: 'never', why: 'QoS 0' } : waitsPerhaps(standing)
}

/**
 * The session comes back. The hub sends the messages that it owes. It chooses from the messages that waited. `wasQos2`:
 * the session got the message at QoS 2. The store has a copy of each such message, so the hub can send it again without
 * the journal.
 */
export function whenReturned(standing: Standing, event: Event, moment: Moment, wasQos2: boolean): Standing {
  if (standing.is === 'acknowledged') {
    return standing.isKnown ? { is: 'never', why: 'acknowledged' } : comesPerhaps(standing)
  }
  if (standing.is !== 'sent' && standing.is !== 'waits') return standing
  if (isOver(event, moment.now)) {
    const isSure = event.keep === 'every' ? event.qos === 1 || standing.is === 'waits' : isUnsent(standing)
    return isSure ? { is: 'never', why: 'expired' } : comesPerhaps(standing)
  }
  if (standing.is === 'sent') {
    if (!standing.isOwed) return comesPerhaps(standing)
    if (wasQos2) return { is: 'must', before: standing }
    // After a crash, the hub repeats messages from the journal. If the journal was trimmed, the hub chooses from them.
    // Of a track or data topic, it then repeats only the newest value.
    const isLeftOut = standing.isRead && !event.isWhole && !isAsked(event, moment)
    return event.isKept && !isLeftOut ? { is: 'must', before: standing } : comesPerhaps(standing)
  }
  if (standing.choice === 'perhaps' || !event.isKept) return comesPerhaps(standing)
  const isEach = event.keep === 'every' || (standing.choice === 'all' && event.isWhole)
  const newest = isEach ? 'yes' : isNewest(event, moment)
  // `perhaps`: the hub accepted the event before or after its choice, or not at all. An event accepted after the choice
  // comes even if it is superseded.
  if (event.accepted === 'perhaps') return comesPerhaps(standing)
  if (newest === 'yes' && standing.choice === 'all') return { is: 'must', before: standing }
  if (newest === 'yes') {
    const unsent = isUnsent(standing) && { isUnsent: true }
    return { is: 'must', isChosen: true, ...unsent, ...(standing.isAgain && { isAgain: true }) }
  }
  if (newest === 'no' && standing.choice === 'newest') return { is: 'never', why: 'superseded' }
  return comesPerhaps(standing)
}

/** `dropped`: how many messages the session loses to the limits. */
export interface Limited {
  standings: Standing[]
  dropped: { min: number; max: number }
}

/**
 * Applies the limits. If too many messages wait, the hub drops the oldest of those never sent. It drops sent messages
 * only if the journal was trimmed. `before`: the standings before the session came back or left, or before the
 * trimming.
 */
export function withinLimit(
  before: readonly Standing[],
  standings: readonly Standing[],
  events: readonly Pick<Event, 'isWhole'>[],
  { queueLimit, maxOwed }: Pick<Bounds, 'queueLimit' | 'maxOwed'>,
): Limited {
  const isPossible = (standing: Standing) =>
    standing.is === 'may' ? !standing.isQos0 : ['must', 'waits', 'sent'].includes(standing.is)
  const isCertain = (standing: Standing) =>
    standing.is === 'must' || (standing.is === 'sent' && standing.isOwed)
  const wasSent = (number: number) => {
    const standing = before[number]
    if (standing?.is === 'waits')
      return isUnsent(standing) ? 'no' : standing.choice === 'all' ? 'yes' : 'perhaps'
    if (standing?.is === 'must') {
      if (standing.before) return 'yes'
      return standing.isUnsent ? 'no' : 'perhaps'
    }
    return standing?.is === 'sent' || standing?.is === 'acknowledged' ? 'yes' : 'perhaps'
  }
  const all = standings.map((standing, number) => ({ standing, number, sent: wasSent(number) }))
  const possible = all.filter(({ standing }) => isPossible(standing))
  const certain = possible.filter(({ standing }) => isCertain(standing))
  const waiting = possible.filter(({ sent }) => sent !== 'yes')
  const certainlyWaiting = certain.filter(({ sent }) => sent === 'no')
  const roomFor = (sent: number) => Math.max(0, Math.min(queueLimit, maxOwed - sent))
  // The client has got PUBREL for these QoS 2 messages. They are in flight and take room until the node has read
  // PUBCOMP. Perhaps the node has not read it yet.
  const completed = before.filter((standing) => standing.is === 'acknowledged' && standing.at === -Infinity)
  const room = {
    min: roomFor(possible.filter(({ sent }) => sent !== 'no').length + completed.length),
    max: roomFor(certain.filter(({ sent }) => sent === 'yes').length),
  }
  // After a crash, all sent messages are perhaps acknowledged before the hub reads the waiting ones. Then the sent ones
  // take no room.
  const isAfterCrash = before.some(isSentAgain)
  if (isAfterCrash) room.max = queueLimit
  const isCrowded = possible.length > maxOwed
  const behind = (number: number, those: typeof all) => those.filter((each) => each.number > number).length
  return {
    standings: all.map(({ standing, number, sent }) => {
      const isInGap = isRead(before[number]) && !events[number]?.isWhole
      if (standing.is === 'must' && isInGap && isCrowded) return { is: 'may' }
      if (sent === 'yes' || !isPossible(standing) || behind(number, waiting) < room.min) return standing
      // Here `waits` means that the session has just left. If the hub has not read this message from the journal yet,
      // the hub does not drop the message now.
      if (standing.is === 'waits') return waitsPerhaps(standing)
      const isDropped = sent === 'no' && behind(number, certainlyWaiting) >= room.max
      if (isDropped) return { is: 'never', why: 'over the limit' }
      return comesPerhaps(standing)
    }),
    dropped: {
      min: isAfterCrash ? 0 : Math.max(0, certainlyWaiting.length - room.max),
      max: Math.max(0, waiting.length - room.min),
    },
  }
}

/**
 * The journal is trimmed during a connection. From waiting messages, the hub then chooses as at a return (`isAsked`).
 */
export function whenTrimmed(standing: Standing): Standing {
  if (standing.is !== 'must' || (standing.before && !isRead(standing.before))) return standing
  return { ...standing, isBehind: true }
}

/**
 * The in-flight window is full, and nothing is on its way. So the hub has not sent the message in this connection.
 * `isUnsent`: the hub cannot have sent it in an earlier connection either.
 */
export function whenWindowFull(standing: Standing): Standing {
  if (standing.is !== 'must') return standing
  return { ...standing, isUnsent: !standing.before && !standing.isAgain }
}

/** Whether a message must come now, if there is room for it in flight. */
export function isDue(standing: Standing, event: Event, moment: Moment): boolean {
  if (standing.is !== 'must' || isOver(event, moment.now) || !event.isKept) return false
  return !standing.isBehind || isAsked(event, moment)
}

/**
 * The session removed filters, or lowered them to QoS 0. A message that the hub had not sent by that time does not
 * come. After a crash, the test does not know whether the hub had sent a message: the message may come.
 */
export function whenFiltersChanged(standing: Standing, event: Event, filters: Filters): Standing {
  const counting = counts(event, filters)
  if (standing.is !== 'must' || counting === 'yes') return standing
  if (standing.before) return isRead(standing.before) ? { is: 'may' } : standing
  if (counting === 'perhaps') return { is: 'may' }
  return { is: 'never', why: 'filter removed', ...(standing.isChosen && { wasChosen: true }) }
}

/**
 * The node crashes while the session is connected, or soon after the session left. The node has perhaps not stored the
 * end of the connection. A message of that connection comes again, even a superseded one, if its acknowledgement is not
 * stored and a filter still counts for it. `isRecent`: whether an acknowledgement sent at the time `at` is perhaps not
 * stored.
 */
export function whenCrashed(
  standing: Standing,
  event: Event,
  session: { filters: Filters; wasConnected: boolean; isAfterCrash: boolean; isRaced: boolean },
  isRecent: (at: number) => boolean,
): Standing {
  const counting = counts(event, session.filters)
  const isCounted = counting === 'yes'
  switch (standing.is) {
    case 'must':
      if (standing.before) return standing.before
      if (!isCounted) return { is: 'waits', choice: 'perhaps' }
      if (standing.isBehind) return { is: 'waits', choice: 'newest, perhaps all', isAgain: true }
      return { is: 'waits', choice: 'all' }
    case 'may':
      return standing.isQos0 && counting === 'no'
        ? { is: 'never', why: 'QoS 0' }
        : { is: 'waits', choice: 'perhaps', isAgain: true }
    case 'waits':
      // The client left before the crash. Until the node has stored that the client left, the node can still send
      // messages. Perhaps it sent this message, which may then come again.
      return session.wasConnected || standing.choice === 'all' || standing.choice === 'perhaps'
        ? standing
        : { is: 'waits', choice: 'newest, perhaps all', isAgain: true }
    case 'sent':
      // If the filter ended while the message was on its way, the message need not come again.
      return { is: 'sent', isOwed: standing.isOwed && (isCounted || !session.isRaced), isRead: true }
    case 'acknowledged':
      return isRecent(standing.at) ? { ...standing, isKnown: false } : standing
    case 'never':
      // The session's record does not say whether the message was sent before its filter ended.
      if (standing.wasChosen) return { is: 'waits', choice: 'perhaps' }
      // The hub promises nothing about events that came before a filter was raised above QoS 0.
      if (standing.why === 'QoS 0') return { is: 'waits', choice: 'perhaps' }
      // After an earlier crash, the node first repeats messages, and then chooses new ones. This crash perhaps came
      // before that choice. The node can then still choose this message.
      return session.isAfterCrash && ['superseded', 'over the limit'].includes(standing.why)
        ? { is: 'waits', choice: 'perhaps' }
        : standing
  }
}

/**
 * Whether a SUBSCRIBE brings a retained value. It does not bring a value that is in flight to the session. At QoS 2, a
 * value is in flight until its PUBCOMP is stored, and the test does not know when that is. So once the client has sent
 * PUBREC, a SUBSCRIBE may bring the value, but need not.
 */
export function broughtBySubscribe(
  event: Event,
  {
    standing,
    qos: receivedAt,
    isDueBesides,
  }: {
    standing: Standing
    qos: number
    /**
     * An earlier SUBSCRIBE brought the event as a retained value. The event is still to come as an ordinary message,
     * too.
     */
    isDueBesides: boolean
  },
  granted: ReadonlyMap<string, 0 | 1 | 2>,
  moment: Moment,
): 'must' | 'may' | 'never' {
  const qos = [...granted].filter(([filter]) => matches(filter, event.topic)).map(([, each]) => each)
  if (qos.length === 0 || event.keep === 'every') return 'never'
  const newest = isNewest(event, moment)
  if (newest === 'no') return 'never'
  if (qos.includes(0)) return 'may'
  if (standing.is === 'sent') return standing.isOwed ? 'never' : 'may'
  const isOnItsWay = standing.is === 'must' || standing.is === 'may' || isDueBesides
  const isUncertain = standing.is === 'acknowledged' && !standing.isKnown
  const isAtQos2 = receivedAt === 2 && standing.is === 'acknowledged'
  const isOpen = newest === 'perhaps' || isOnItsWay || isUncertain || isAtQos2
  return isOpen || event.accepted !== 'yes' ? 'may' : 'must'
}

/** Joins two standings, because nobody knows whether a change or the event came first. */
export function eitherWay(before: Standing, after: Standing): Standing {
  if (before.is === 'sent' || before.is === 'acknowledged') return before
  if (JSON.stringify(before) === JSON.stringify(after)) return before
  const all = [before, after]
  const waiting = all.flatMap((each) => (each.is === 'waits' ? [each] : []))
  if (waiting.length === 0) return { is: 'may' }
  const isNone = waiting.length < all.length || waiting.some(({ choice }) => choice === 'perhaps')
  return { is: 'waits', choice: isNone ? 'perhaps' : 'newest, perhaps all' }
}

/** Returns the faults of a PUBLISH that a session receives. */
export function wrongWith(
  packet: { qos: 0 | 1 | 2; dup: boolean; retain: boolean; packetId: number },
  event: Event,
  known: {
    standing: Standing
    /** Receipts at QoS 1 and 2, and whether the last was in this connection. */
    received: number
    receivedHere: boolean
    /** The packet identifier under which this session, or another one (`packetIdElsewhere`), received the message. */
    packetId: number | undefined
    packetIdElsewhere: number | undefined
    isBroughtBySubscribe: boolean
    /**
     * A SUBSCRIBE brought the event as a retained value. The event was still to come as an ordinary message, and so
     * comes once more.
     */
    isDueBesides: boolean
    /** The hub accepted the message after the log-in of this connection. */
    isNew: boolean
    /** The application gets the message at QoS 2 for the second time. */
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
  if (known.isDueBesides && !packet.retain) return wrong
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

/** A message above QoS 0 that came in a connection. */
export interface Arrival {
  number: number
  qos: number
  /** The session has received the message before. */
  isOwed: boolean
}

/**
 * Whether a message comes in the wrong place. Owed messages come first, then chosen ones, then new ones. Owed and
 * chosen messages come in the order of acceptance. New messages have this order only among messages of the same QoS
 * [MQTT-4.6.0-6].
 * - `before`: earlier messages of the connection
 * - `leftAt`: how many events there were when the session left
 * - `cameAt`: how many events there were when the session came back
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
type KeepingBounds = Pick<Bounds, 'history' | 'queueLimit'>

/** Whether a filter above QoS 0 was granted before the event. */
function counts({ number, topic }: Event, filters: Filters): 'yes' | 'perhaps' | 'no' {
  const asking = [...filters].flatMap(([filter, each]) =>
    each.qos > 0 && matches(filter, topic) ? [each] : [],
  )
  if (asking.some(({ since }) => since <= number)) return 'yes'
  return asking.some(({ perhapsSince }) => perhapsSince <= number) ? 'perhaps' : 'no'
}

/** Whether the event is the retained value of its topic. */
function isNewest(event: Event, { events }: Pick<Moment, 'events'>): 'yes' | 'perhaps' | 'no' {
  const newer = events.filter(
    ({ topic, time, number }) =>
      topic === event.topic && (time > event.time || (time === event.time && number > event.number)),
  )
  if (newer.some((other) => other.accepted === 'yes')) return 'no'
  return newer.length > 0 ? 'perhaps' : 'yes'
}

function isOver({ expires }: Event, now: number): boolean {
  return expires !== undefined && expires <= now
}

/** Whether the hub has certainly never sent the message. */
function isUnsent(standing: Standing): boolean {
  return standing.is === 'waits' && (standing.choice === 'newest' || standing.isUnsent === true)
}

/** Whether the message comes again because of a crash, or may come again. */
export function isSentAgain(standing: Standing): boolean {
  if (standing.is === 'acknowledged') return !standing.isKnown
  return isRead(standing) || ('isAgain' in standing && standing.isAgain === true)
}

function comesPerhaps(before: Standing): Standing {
  return { is: 'may', ...(isSentAgain(before) && { isAgain: true }) }
}

function waitsPerhaps(before: Standing): Standing {
  return { is: 'waits', choice: 'perhaps', ...(isSentAgain(before) && { isAgain: true }) }
}

/** Whether the message comes again after a crash, because the message's position is after the stored progress. */
function isRead(standing: Standing | undefined): boolean {
  if (standing?.is === 'must') return isRead(standing.before)
  if (standing?.is === 'waits') return standing.choice === 'all'
  return standing?.is === 'sent' && standing.isRead === true
}

/** Whether a returning session gets the event. Of track and data topics, only the newest comes. */
function isAsked(event: Event, moment: Moment): boolean {
  return event.keep === 'every' || isNewest(event, moment) === 'yes'
}

/** Whether a filter matches a topic [MQTT-4.7.1]. */
export function matches(filter: string, topic: string): boolean {
  const [levels, wanted] = [topic.split('/'), filter.split('/')]
  const isOpenEnded = wanted.at(-1) === '#'
  if (isOpenEnded) wanted.pop()
  if (isOpenEnded ? levels.length < wanted.length : levels.length !== wanted.length) return false
  return wanted.every((level, index) => level === '+' || level === levels[index])
}
