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
  /** The rules of its stream have kept it so far. */
  isKept: boolean
  /** Nothing was trimmed since: whatever the rules of its stream say, it is there. */
  isWhole: boolean
}

/** How much is kept, and how much a session may have of what it has not acknowledged. */
export interface Bounds {
  /** Bytes of the newest messages, whichever they are. */
  windowBytes: number
  /** Events of a stream. */
  history: number
  /** Valid control events of a stream, and what waits for a session and was never sent. */
  queueLimit: number
  /** All that a session may be owed. */
  maxOwed: number
  /** Unacknowledged messages: so many come at least, and at most. */
  inFlightWindow: number
  maxInFlight: number
}

export interface Filter {
  qos: 0 | 1 | 2
  /** Number of the first event that it counts for. */
  since: number
  /** It may count from this event on: those up to `since` were on their way when it was granted. */
  perhapsSince: number
}

/** What a session has of a message, or still has to get. */
export type Standing =
  /** `wasChosen`: for a session that came back; its filter was removed before it was sent. */
  | { is: 'never'; why: Reason; wasChosen?: boolean }
  /**
   * The session is away. When it comes back, `choice` says how the hub chooses. `isUnsent`: the message was certainly never
   * sent. `isAgain`: a crash may bring the message once more.
   */
  | { is: 'waits'; choice: Choice; isUnsent?: boolean; isAgain?: boolean }
  /**
   * `isUnsent`: it was certainly never sent. `isBehind`: while it waited for acknowledgements, the journal was trimmed;
   * then it is chosen as for a return. `before`: where it stands again if the connection ends first. `isChosen`: when
   * the session came back.
   */
  | { is: 'must'; isUnsent?: boolean; isBehind?: boolean; isChosen?: boolean; before?: Before }
  /** `isQos0`: only in this connection, and not above QoS 0. `isAgain`: as above. */
  | { is: 'may'; isQos0?: true; isAgain?: boolean }
  /**
   * Received, and not acknowledged; `isOwed`: it comes again with the next connection. `isRead`: after a crash, because
   * the journal has it behind the last word of the node.
   */
  | { is: 'sent'; isOwed: boolean; isRead?: boolean }
  /** `isKnown`: the node has seen the acknowledgement. */
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

/** The livestream that an event belongs to; undefined: it is a report, which is no event of a livestream. */
export function streamOf({ topic, keep, expires }: Pick<Event, 'topic' | 'keep' | 'expires'>) {
  return keep === 'every' && expires === undefined ? undefined : topic.split('/')[1]
}

/**
 * Whether the rules of its stream keep an event when the journal is trimmed: a report, of the others the newest, the
 * newest control events that are valid, and retained values.
 */
export function isKeptNow(event: Event, moment: Moment, { history, queueLimit }: KeepingBounds): boolean {
  const stream = streamOf(event)
  if (stream === undefined) return true
  const newer = moment.events.filter((other) => streamOf(other) === stream && other.number > event.number)
  if (newer.length < history) return true
  if (event.keep === 'latest') return isNewest(event, moment) === 'yes'
  const valid = newer.filter((other) => other.keep === 'every' && !isOver(other, moment.now))
  return !isOver(event, moment.now) && valid.length < queueLimit
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
  if (standing.is === 'must') {
    if (standing.before) return standing.before
    const isUnsent = standing.isUnsent ? { isUnsent: true } : {}
    return { is: 'waits', choice: 'newest, perhaps all', ...isUnsent }
  }
  if (standing.is !== 'may') return standing
  return standing.isQos0 ? { is: 'never', why: 'QoS 0' } : waitsPerhaps(standing)
}

/**
 * The session comes back: what is owed, and a choice from what waited. It is made once. `wasQos2`: it was sent at QoS 2,
 * and so does not depend on the journal.
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
    // Of what the journal no longer has as a whole, only the newest comes again.
    const isLeftOut = standing.isRead && !event.isWhole && !isAsked(event, moment)
    return event.isKept && !isLeftOut ? { is: 'must', before: standing } : comesPerhaps(standing)
  }
  if (standing.choice === 'perhaps' || !event.isKept) return comesPerhaps(standing)
  const isEach = event.keep === 'every' || (standing.choice === 'all' && event.isWhole)
  const newest = isEach ? 'yes' : isNewest(event, moment)
  // Accepted after the log-in, it comes also where it is not the newest.
  if (event.accepted === 'perhaps') return comesPerhaps(standing)
  if (newest === 'yes' && standing.choice === 'all') return { is: 'must', before: standing }
  if (newest === 'yes') return { is: 'must', isChosen: true, ...(isUnsent(standing) && { isUnsent: true }) }
  if (newest === 'no' && standing.choice === 'newest') return { is: 'never', why: 'superseded' }
  return comesPerhaps(standing)
}

/** What a session has of each event when it comes back, or leaves; `dropped`: how many it loses to the limit. */
export interface Limited {
  standings: Standing[]
  dropped: { min: number; max: number }
}

/**
 * More than may wait: the oldest that were never sent are dropped, and counted. Nothing that was sent is, as long as the
 * journal is whole. `before`: where the events stood before `standings`.
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
  // At QoS 2 it is in flight until its PUBCOMP has come.
  const completed = before.filter((standing) => standing.is === 'acknowledged' && standing.at === -Infinity)
  const room = {
    min: roomFor(possible.filter(({ sent }) => sent !== 'no').length + completed.length),
    max: roomFor(certain.filter(({ sent }) => sent === 'yes').length),
  }
  // After a crash there is more room: what does not fit is read when the rest is acknowledged.
  const isAfterCrash = before.some(isSentAgain)
  if (isAfterCrash) room.max = queueLimit
  const isCrowded = possible.length > maxOwed
  const behind = (number: number, those: typeof all) => those.filter((each) => each.number > number).length
  return {
    standings: all.map(({ standing, number, sent }) => {
      const isInGap = isRead(before[number]) && !events[number]?.isWhole
      if (standing.is === 'must' && isInGap && isCrowded) return { is: 'may' }
      if (sent === 'yes' || !isPossible(standing) || behind(number, waiting) < room.min) return standing
      // When it leaves: what it would have read from the journal is not dropped yet.
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
 * The journal is trimmed while the session is connected. What it has not got yet is chosen as for a return if it had to
 * wait: of track and data topics the newest.
 */
export function whenTrimmed(standing: Standing): Standing {
  if (standing.is !== 'must' || (standing.before && !isRead(standing.before))) return standing
  return { ...standing, isBehind: true }
}

/** Whether a message must come now, if there is room for it in flight. */
export function isDue(standing: Standing, event: Event, moment: Moment): boolean {
  if (standing.is !== 'must' || isOver(event, moment.now) || !event.isKept) return false
  return !standing.isBehind || isAsked(event, moment)
}

/** Filters were removed or lowered to QoS 0: what was not begun ends. After a crash it is not known what was. */
export function whenFiltersChanged(standing: Standing, event: Event, filters: Filters): Standing {
  const counting = counts(event, filters)
  if (standing.is !== 'must' || counting === 'yes') return standing
  if (standing.before) return isRead(standing.before) ? { is: 'may' } : standing
  if (counting === 'perhaps') return { is: 'may' }
  return { is: 'never', why: 'filter removed', ...(standing.isChosen && { wasChosen: true }) }
}

/**
 * The node crashes, with the session connected, or so shortly after it left that this may not be stored. All of the
 * connection goes out again, unconflated, where a filter still counts for it. `isRecent`: acknowledged within the time
 * for which a node may forget.
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
      return { is: 'waits', choice: standing.isBehind ? 'newest, perhaps all' : 'all' }
    case 'may':
      return standing.isQos0 && counting === 'no'
        ? { is: 'never', why: 'QoS 0' }
        : { is: 'waits', choice: 'perhaps', isAgain: true }
    case 'waits':
      return session.wasConnected || standing.choice !== 'newest'
        ? standing
        : { is: 'waits', choice: 'newest, perhaps all' }
    case 'sent':
      // What an UNSUBSCRIBE met on its way may have been sent after the end of its filter was written down.
      return { is: 'sent', isOwed: standing.isOwed && (isCounted || !session.isRaced), isRead: true }
    case 'acknowledged':
      return isRecent(standing.at) ? { ...standing, isKnown: false } : standing
    case 'never':
      // It is in the record of the session, which does not say whether it was sent before its filter was removed.
      if (standing.wasChosen) return { is: 'waits', choice: 'perhaps' }
      // Its filter may have been raised since; whether that counts from before is not promised.
      if (standing.why === 'QoS 0') return { is: 'waits', choice: 'perhaps' }
      // A crash before had more to repeat than the node had room for: it may not have got to the choice behind that.
      return session.isAfterCrash && ['superseded', 'over the limit'].includes(standing.why)
        ? { is: 'waits', choice: 'perhaps' }
        : standing
  }
}

/**
 * What a SUBSCRIBE brings of the retained values: each, unless the session has it in flight; at QoS 2 it may be until
 * the last acknowledgement is stored.
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
    /** A SUBSCRIBE brought it before, and it comes once more: perhaps it is in flight by then. */
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
    /** A SUBSCRIBE brought it while it was on its way all the same: it comes once more. */
    isDueBesides: boolean
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
type KeepingBounds = Pick<Bounds, 'history' | 'queueLimit'>

/** Whether a filter above QoS 0 was granted before the event. */
function counts({ number, topic }: Event, filters: Filters): 'yes' | 'perhaps' | 'no' {
  const asking = [...filters].flatMap(([filter, each]) =>
    each.qos > 0 && matches(filter, topic) ? [each] : [],
  )
  if (asking.some(({ since }) => since <= number)) return 'yes'
  return asking.some(({ perhapsSince }) => perhapsSince <= number) ? 'perhaps' : 'no'
}

/** Whether it is the retained value of its topic. */
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

/** Whether it is certain that it was never on its way. */
function isUnsent(standing: Standing): boolean {
  return standing.is === 'waits' && (standing.choice === 'newest' || standing.isUnsent === true)
}

/** Whether it comes again, or may, because of a crash. */
export function isSentAgain(standing: Standing): boolean {
  if (standing.is === 'acknowledged') return !standing.isKnown
  return isRead(standing) || ((standing.is === 'waits' || standing.is === 'may') && standing.isAgain === true)
}

function comesPerhaps(before: Standing): Standing {
  return { is: 'may', ...(isSentAgain(before) && { isAgain: true }) }
}

function waitsPerhaps(before: Standing): Standing {
  return { is: 'waits', choice: 'perhaps', ...(isSentAgain(before) && { isAgain: true }) }
}

/** Whether it comes after a crash because the journal has it behind the last word of the node. */
function isRead(standing: Standing | undefined): boolean {
  if (standing?.is === 'must') return isRead(standing.before)
  if (standing?.is === 'waits') return standing.choice === 'all'
  return standing?.is === 'sent' && standing.isRead === true
}

/** Whether a session that returns gets it: each control event and report, of other topics the newest. */
function isAsked(event: Event, moment: Moment): boolean {
  return event.keep === 'every' || isNewest(event, moment) === 'yes'
}

/** As MQTT has it [MQTT-4.7.1]. */
export function matches(filter: string, topic: string): boolean {
  const [levels, wanted] = [topic.split('/'), filter.split('/')]
  const isOpenEnded = wanted.at(-1) === '#'
  if (isOpenEnded) wanted.pop()
  if (isOpenEnded ? levels.length < wanted.length : levels.length !== wanted.length) return false
  return wanted.every((level, index) => level === '+' || level === levels[index])
}
