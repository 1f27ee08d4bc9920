import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { IPublishPacket } from 'mqtt-packet'
import { startHub } from './hub.ts'
import { createListener, type Listener } from './listener.ts'
import {
  type Arrival,
  broughtBySubscribe,
  type Event,
  eitherWay,
  type Filter,
  isDue,
  isKeptNow,
  isOutOfOrder,
  isSentAgain,
  type Limited,
  matches,
  type Standing,
  whenAccepted,
  whenCrashed,
  whenFiltersChanged,
  whenLeft,
  whenReturned,
  whenTrimmed,
  whenWindowFull,
  withinLimit,
  wrongWith,
} from './promises.ts'
import type { Draft, Sequence, Step } from './steps.ts'

/** Milliseconds. Only a sequence that fails waits so long for a message. */
const patienceMs = Number(process.env.PROMISES_PATIENCE_MS ?? 2_000)
/** Milliseconds. A crash can lose younger acknowledgements: a node stores them once a second. */
const forgottenMs = 2_500
const minute = 60_000

/** The state of an event for one session. */
interface Copy {
  standing: Standing
  /** Receipts at QoS 1 and 2. The fields below describe the last one. */
  received: number
  connection: number
  packetId: number | undefined
  qos: number
  cameBySubscribe: boolean
  isDueBesides: boolean
  isDeliveredAtQos2: boolean
}

interface Session {
  name: string
  listener: Listener
  exists: boolean
  isConnected: boolean
  /** The node has stored the end of the last connection. */
  isStored: boolean
  node: number
  filters: Map<string, Filter>
  connection: number
  /** Number of events when the session last came, and when it last left. */
  cameAt: number
  leftAt: number
  copies: Copy[]
  /** Retained values that a SUBSCRIBE is to bring, by number of the event. */
  brought: Map<number, { is: 'must' | 'may'; times: number }>
  /** Identifiers whose PUBREL must be repeated. */
  released: Set<number>
  /** Events in flight, by identifier. */
  inFlight: Map<number, number>
  order: Arrival[]
  /** Events that raced with a SUBSCRIBE or UNSUBSCRIBE. Old and new filters can count. */
  raced: Set<number>
  /** The last return of the session followed a crash. */
  isAfterCrash: boolean
  /** The in-flight window was perhaps full. Since then, less than half of the window has been free. */
  isBehind: boolean
  /** How many messages the session has lost. A crash hides the number. */
  dropped: { min: number; max: number }
}

/**
 * Plays a sequence up to the first step with problems, and returns these problems. Problems that match `except` do not
 * count.
 */
export async function play(sequence: Sequence, except?: RegExp): Promise<string[]> {
  const events: Event[] = []
  const problems: string[] = []
  const packetIds = new Map<number, number>()
  let now = Date.now()
  let publishing: Promise<unknown>[] = []
  let trimming: Promise<void> | undefined
  const { bounds } = sequence
  const publishedAt = new Map<Event, number>()
  const hub = await startHub(sequence.nodes, bounds, () => now)
  const sessions = Array.from({ length: sequence.sessions }, (_, index) => createSession(`session-${index}`))

  try {
    for (const [index, step] of sequence.steps.entries()) {
      await perform(step)
      // Without `waits`, the next step comes while these events are on their way.
      const isOnItsWay = step.act === 'publish' && !step.waits && index < sequence.steps.length - 1
      if (!isOnItsWay) await settle()
      if (problems.length > 0) return problems.map((problem) => `step ${index}: ${problem}`)
    }
    // In the end, each session comes back twice: it must get everything, and nothing twice.
    for (const round of [1, 2]) {
      for (const session of sessions) {
        if (!session.exists) continue
        await comeBack(session, round, false)
        await settle()
      }
    }
    return problems.map((problem) => `in the end: ${problem}`)
  } catch (error) {
    return [...problems, `${error}`]
  } finally {
    for (const { listener } of sessions) listener.cut()
    await hub.close()
  }

  /** In several parts: a machine that stands still takes one of them from the node, in the others the node stores. */
  async function pause(): Promise<void> {
    for (let part = 0; part < 3; part++) {
      await delay(forgottenMs / 2)
      await settle()
    }
  }

  async function perform(step: Step): Promise<void> {
    const session = 'who' in step ? sessions[step.who % sessions.length] : undefined
    const node = 'node' in step ? step.node % sequence.nodes : 0
    if (step.act === 'publish') {
      // If two nodes accepted events at the same time, the test would not know their order.
      if ([...publishedAt].some(([{ accepted }, other]) => accepted === 'not yet' && other !== node))
        await settle()
      publish(node, step.drafts)
    }
    if (step.act === 'crash') await crash(node, step.turns)
    else if (step.act === 'pass') {
      await settle()
      now += step.minutes * minute
    } else if (step.act === 'pause') await pause()
    else if (step.act === 'trim') await trim(step)
    else if (!session) return
    else if (step.act === 'return') await comeBack(session, node, step.holds)
    else if (step.act === 'end') await end(session, node)
    else if (!session.isConnected) return
    else if (step.act === 'subscribe') await subscribe(session, new Map(step.granted))
    else if (step.act === 'unsubscribe') await unsubscribe(session, step.filter)
    else if (step.act === 'leave') await leave(session, step)
    else if (step.act === 'hold') session.listener.hold()
    else if (step.act === 'acknowledge') session.listener.acknowledge(step.which)
  }

  function publish(node: number, drafts: readonly Draft[]): void {
    const fresh = drafts.map(({ topic, age, lasts, qos }, index): Event => {
      const expires = lasts === undefined ? {} : { expires: now + lasts * minute }
      const keep = topic.startsWith('latest') ? 'latest' : 'every'
      const number = events.length + index
      const where = { accepted: 'not yet', isKept: true, isWhole: true } as const
      return { number, topic, keep, time: now - age * minute, ...expires, qos, ...where }
    })
    events.push(...fresh)
    for (const event of fresh) {
      publishedAt.set(event, node)
      for (const { copies, filters, isConnected } of sessions) {
        copies.push(newCopy(whenAccepted(event, filters, isConnected)))
      }
    }
    if (trimming) noteTrimmed()
    publishing.push(
      hub.publish(node, fresh, (event) => {
        event.accepted = 'yes'
      }),
    )
  }

  async function trim({ times, waits }: { times: number; waits: boolean }): Promise<void> {
    noteTrimmed()
    const before = trimming
    const trimAll = async () => {
      await before
      for (let count = 0; count < times; count++) await hub.trim()
    }
    trimming = trimAll()
    if (waits) await trimming
  }

  /** Notes that the journal can lose the events that no rule keeps. Call this before, during and after trimming. */
  function noteTrimmed(): void {
    if (bounds.windowBytes > 1) return
    for (const event of events) {
      event.isWhole = false
      event.isKept &&= isKeptNow(event, { now, events }, bounds)
    }
    for (const session of sessions) {
      if (!session.isConnected) continue
      const before = session.copies.map(({ standing }) => standing)
      // The hub drops messages only if the session has fallen behind. The test cannot know whether it has, so no drop
      // is certain. With `isUnsent: false`, `withinLimit` assumes that each message may have been sent already.
      const limits = { queueLimit: Math.min(bounds.queueLimit, bounds.maxOwed), maxOwed: Infinity }
      const perhapsSent = before.map(
        (standing): Standing => (standing.is === 'must' ? { ...standing, isUnsent: false } : standing),
      )
      const trimmed = withinLimit(perhapsSent, before.map(whenTrimmed), events, limits)
      for (const { number } of events) copyOf(session, number).standing = standingIn(trimmed, number)
      // At each gap in the journal, the hub counts one message as lost. The test does not know how many gaps a session
      // meets.
      const isWaiting = before.some(({ is }) => is === 'must') || session.brought.size > 0
      if (isWaiting || isFull(session)) session.dropped.max = Infinity
    }
  }

  async function comeBack(session: Session, node: number, holds: boolean): Promise<void> {
    // During the log-in, the hub chooses messages. Before or after that choice, it can accept events that are still on
    // their way.
    const underway = new Set(events.filter(({ accepted }) => accepted !== 'yes'))
    const asChosenFrom = (event: Event): Event =>
      underway.has(event) ? { ...event, accepted: 'perhaps' } : event
    await session.listener.connect(hub.connect(node), { clean: false, holds }, (isPresent) => {
      if (isPresent !== session.exists) problem(session, `session present: ${isPresent}`)
      if (session.isConnected) hasLeft(session)
      const moment = { now, events: events.map(asChosenFrom) }
      const before = session.copies.map(({ standing }) => standing)
      const returned = session.copies.map(({ standing, qos }, number) =>
        whenReturned(standing, eventOf(moment.events, number), moment, qos === 2),
      )
      const limited = withinLimit(before, returned, events, bounds)
      // An owed message that the journal lacks can count as lost, whatever its new standing is.
      const isLostPerhaps = (standing: Standing, number: number) =>
        (standing.is === 'may' && !standing.isQos0) || (isOwed(before[number]) && !events[number]?.isKept)
      session.isAfterCrash = before.some(isSentAgain)
      session.dropped.min += limited.dropped.min
      session.dropped.max +=
        limited.dropped.max + returned.filter(isLostPerhaps).length + session.brought.size
      change(
        session,
        (_, { number }) => standingIn(limited, number),
        () => {
          Object.assign(session, {
            exists: true,
            isConnected: true,
            isStored: true,
            node: node % sequence.nodes,
          })
          session.connection++
          session.cameAt = events.length
          session.order = []
          session.released = new Set(session.listener.uncompleted)
        },
      )
    })
  }

  async function end(session: Session, node: number): Promise<void> {
    await session.listener.connect(hub.connect(node), { clean: true, holds: false }, (isPresent) => {
      if (isPresent) problem(session, 'session present after a clean CONNECT')
      session.listener.forget()
      const { name, listener, connection } = session
      const filters = new Map<string, Filter>()
      const copies = events.map((event) => newCopy(whenAccepted(event, filters, false)))
      Object.assign(session, { ...emptySession(name, listener), connection, copies, filters })
    })
    await session.listener.leave()
  }

  async function leave(session: Session, how: { isClean: boolean; rests: boolean }): Promise<void> {
    if (how.isClean) await session.listener.leave()
    else session.listener.cut()
    hasLeft(session)
    const others = sessions.filter(({ isConnected, node }) => isConnected && node === session.node)
    session.isStored = how.rests
    if (how.rests) await hub.rests(session.node, others.length)
  }

  function hasLeft(session: Session): void {
    const before = session.copies.map(({ standing }) => standing)
    const limits = { queueLimit: Infinity, maxOwed: bounds.maxOwed }
    const left = withinLimit(before, before.map(whenLeft), events, limits)
    session.dropped.max += left.dropped.max + session.brought.size
    change(
      session,
      (_, { number }) => standingIn(left, number),
      () => {
        session.isConnected = false
      },
    )
    session.leftAt = events.filter(({ accepted }) => accepted !== 'not yet').length
    keepBrought(session)
  }

  /** Retained values that a SUBSCRIBE has not brought yet may come with the next connection. */
  function keepBrought({ brought, copies }: Session): void {
    for (const number of brought.keys()) {
      brought.set(number, { is: 'may', times: 1 })
      const copy = copies[number]
      if (copy && copy.standing.is === 'never') copy.standing = { is: 'waits', choice: 'perhaps' }
    }
  }

  async function subscribe(session: Session, granted: ReadonlyMap<string, 0 | 1 | 2>): Promise<void> {
    for (const [number, event] of events.entries()) {
      const copy = copyOf(session, number)
      const { uncompleted } = session.listener
      const isAtQos0 = [...granted].some(([filter, qos]) => qos === 0 && matches(filter, event.topic))
      if (!isAtQos0 && copy.packetId !== undefined && uncompleted.has(copy.packetId)) continue
      const brings = broughtBySubscribe(event, copy, granted, { now, events })
      const { times = 0 } = session.brought.get(number) ?? {}
      if (brings !== 'never') session.brought.set(number, { is: brings, times: times + 1 })
    }
    const filters = new Map(session.filters)
    const onItsWay = events.findIndex(({ accepted }) => accepted === 'not yet')
    const fresh = { since: events.length, perhapsSince: onItsWay < 0 ? events.length : onItsWay }
    for (const [filter, qos] of granted) {
      const before = filters.get(filter)
      const isSame = before !== undefined && before.qos > 0 && qos > 0
      filters.set(filter, { ...(isSame ? before : fresh), qos })
    }
    change(
      session,
      ({ standing }, event) =>
        event.accepted === 'not yet' ? standing : whenFiltersChanged(standing, event, filters),
      () => {
        session.filters = filters
      },
    )
    noteRaced(session)
    await session.listener.subscribe(granted)
  }

  function noteRaced({ raced }: Session): void {
    for (const { accepted, number } of events) if (accepted === 'not yet') raced.add(number)
  }

  async function unsubscribe(session: Session, filter: string): Promise<void> {
    const filters = new Map(session.filters)
    filters.delete(filter)
    change(
      session,
      ({ standing }, event) =>
        event.accepted === 'not yet' ? standing : whenFiltersChanged(standing, event, filters),
      () => void session.filters.delete(filter),
    )
    noteRaced(session)
    await session.listener.unsubscribe(filter)
  }

  async function crash(node: number, turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn++) await nextTurn()
    const there = sessions.filter(
      (session) => session.node === node && (session.isConnected || !session.isStored),
    )
    for (const { isConnected, listener } of there) if (isConnected) listener.cut()
    const restarted = hub.crash(node)
    for (const event of events) {
      if (event.accepted !== 'not yet' || publishedAt.get(event) !== node) continue
      event.accepted = 'perhaps'
      for (const { copies } of sessions) {
        const copy = copies[event.number]
        if (copy?.standing.is === 'must') copy.standing = { is: 'may' }
      }
    }
    const since = performance.now() - forgottenMs
    // With a small `maxListed`, a crash repeats what a client acknowledged since its log-in. It repeats nothing at QoS 2.
    const isListed = bounds.maxListed > 1_000
    const isForgotten = (at: number) => at > since || (!isListed && at > -Infinity)
    for (const session of there) {
      const { filters, isConnected: wasConnected, isAfterCrash } = session
      change(
        session,
        ({ standing }, event) => {
          const known = { filters, wasConnected, isAfterCrash, isRaced: session.raced.has(event.number) }
          return whenCrashed(standing, event, known, isForgotten)
        },
        () => Object.assign(session, { isConnected: false, isStored: true }),
      )
      session.dropped = { min: 0, max: Infinity }
      // After a crash, owed messages may come after new ones. With `Infinity`, `isOutOfOrder` allows that.
      session.leftAt = Infinity
      keepBrought(session)
    }
    await restarted
  }

  /**
   * Gives each event the standing that `to` returns for the session, and calls `apply`. Some events are still on their
   * way: the hub can accept them before or after this change. Their standings then allow for both.
   */
  function change(session: Session, to: (copy: Copy, event: Event) => Standing, apply: () => void): void {
    for (const event of events) {
      const copy = copyOf(session, event.number)
      copy.standing = to(copy, event)
    }
    apply()
    for (const event of events) {
      if (event.accepted !== 'not yet') continue
      const copy = copyOf(session, event.number)
      copy.standing = eitherWay(copy.standing, whenAccepted(event, session.filters, session.isConnected))
    }
  }

  /** Waits for all work and all due messages. Notes the messages that do not come. */
  async function settle(): Promise<void> {
    await Promise.all(publishing)
    publishing = []
    if (trimming) {
      await trimming
      noteTrimmed()
      trimming = undefined
    }
    await hub.settled()
    const connected = sessions.filter(({ isConnected }) => isConnected)
    const missing = () => connected.flatMap(missingIn)
    const deadline = performance.now() + patienceMs
    // A pause of the machine may last longer than the patience, but takes only one turn.
    for (let turns = 0; missing().length > 0 && (turns < 300 || performance.now() < deadline); turns++) {
      await (turns < 300 ? nextTurn() : delay(5))
    }
    // Waits for messages that are on their way to a client whose window is full.
    if (connected.some(isFull)) for (let turn = 0; turn < 10; turn++) await nextTurn()
    for (const line of missing()) note(line)
    for (const session of connected) {
      const answered = session.copies.map(({ standing }) => standing)
      await session.listener.settled()
      for (const standing of answered) if (standing.is === 'acknowledged') standing.isKnown = true
      // The test notes a missing message only once: the message then gets the standing `may`. A message that waits
      // behind a full window is not missing, and keeps `must`.
      const isWaiting = isFull(session)
      for (const copy of session.copies) {
        const { standing } = copy
        if (isWaiting) copy.standing = whenWindowFull(standing)
        else if (standing.is === 'must' || (standing.is === 'may' && standing.isAgain)) {
          copy.standing = { is: 'may' }
        }
      }
      for (const due of session.brought.values()) due.is = 'may'
      session.released.clear()
      await checkDropped(session, isWaiting)
    }
  }

  /** Whether the client holds back so many acknowledgements that the hub need not send more. */
  function isFull(session: Session): boolean {
    const { inFlightWindow } = bounds
    const { held } = session.listener
    const underway = session.copies.filter(
      ({ standing }) => standing.is === 'acknowledged' && !standing.isKnown,
    )
    // After a full window, the hub waits until half of the window is free.
    if (held + underway.length >= inFlightWindow) session.isBehind = true
    if (held <= inFlightWindow / 2) session.isBehind = false
    return session.isBehind
  }

  async function checkDropped(session: Session, isWaiting: boolean): Promise<void> {
    // With several nodes, this check is left out: a node asks another one through the store, and the answer can be
    // late.
    if (sequence.nodes > 1) return
    const dropped = await hub.droppedOf(session.node, session.name)
    const { min, max } = session.dropped
    if (dropped === undefined || dropped > max || (dropped < min && !isWaiting))
      problem(session, `has lost ${dropped}, not ${min === max ? min : `${min} to ${max}`}`)
  }

  function missingIn(session: Session): string[] {
    const { name, brought, released } = session
    const isWaiting = isFull(session)
    const due = events.filter(
      (event) => !isWaiting && isDue(copyOf(session, event.number).standing, event, { now, events }),
    )
    const retained = events.filter(({ number }) => !isWaiting && brought.get(number)?.is === 'must')
    return [
      ...due.map(
        (event) =>
          `${name} misses ${about(event)}${copyOf(session, event.number).received > 0 ? ', owed' : ''}`,
      ),
      ...retained.map((event) => `${name} misses the retained ${about(event)}`),
      ...[...released].map((packetId) => `${name} misses the PUBREL of ${packetId}`),
    ]
  }

  function receive(session: Session, packet: IPublishPacket, isRepeated: boolean): void {
    const { number } = JSON.parse(packet.payload.toString())
    const event = events[number]
    if (!event) throw new Error(`a message that nobody published: ${packet.topic}`)
    const { qos, dup, retain, messageId: packetId = 0 } = packet
    const copy = copyOf(session, number)
    const isBroughtBySubscribe = session.brought.has(number)
    const isReplay = isBroughtBySubscribe && retain && !dup
    const isPending = copy.standing.is === 'must' || copy.standing.is === 'may'
    const wrong = wrongWith({ qos, dup, retain, packetId }, event, {
      standing: copy.standing,
      received: copy.received,
      receivedHere:
        copy.connection === session.connection && (copy.standing.is === 'sent' || copy.received > 0),
      packetId: copy.packetId,
      packetIdElsewhere: packetIds.get(number),
      isBroughtBySubscribe,
      isDueBesides: copy.isDueBesides,
      isNew: number >= session.cameAt,
      isSecondAtQos2: qos === 2 && copy.isDeliveredAtQos2 && !isRepeated,
    })
    if (qos > 0) {
      const other = session.inFlight.get(packetId)
      const stands = other === undefined ? undefined : session.copies[other]?.standing
      if (other !== number && stands?.is === 'sent' && stands.isOwed)
        wrong.push('its identifier is in flight')
      const isOwed = copy.received > 0
      if (!retain && !copy.cameBySubscribe) {
        const arrival = { number, qos, isOwed }
        const { leftAt, cameAt } = session
        if (isOutOfOrder(arrival, session.order, { leftAt, cameAt })) wrong.push('out of order')
        session.order.push(arrival)
      }
      if (session.listener.held >= bounds.maxInFlight) wrong.push('too many in flight')
      packetIds.set(number, packetIds.get(number) ?? packetId)
      session.inFlight.set(packetId, number)
      if (!isReplay || !copy.cameBySubscribe) copy.cameBySubscribe = isReplay
      if (isReplay) copy.isDueBesides ||= isPending
      else if (!retain) copy.isDueBesides = false
      if (!isRepeated) copy.isDeliveredAtQos2 = qos === 2
      copy.standing = { is: 'sent', isOwed: true }
      copy.received++
      copy.packetId = packetId
      copy.qos = qos
    } else if (!isReplay && !session.raced.has(number)) copy.standing = { is: 'never', why: 'QoS 0' }
    copy.connection = session.connection
    const { times = 0 } = session.brought.get(number) ?? {}
    if (isReplay && times > 1) session.brought.set(number, { is: 'may', times: times - 1 })
    else if (isReplay) session.brought.delete(number)
    for (const line of wrong) problem(session, `gets ${about(event)}: ${line}`)
  }

  function problem({ name }: { name: string }, text: string): void {
    note(`${name} ${text}`)
  }

  function note(line: string): void {
    if (!except?.test(line)) problems.push(line)
  }

  function createSession(name: string): Session {
    const standsAs = (packetId: number, standing: Standing) => {
      const copy = session.copies[session.inFlight.get(packetId) ?? -1]
      if (copy) copy.standing = standing
    }
    const listener = createListener(name, {
      publish: (packet, isRepeated) => receive(session, packet, isRepeated),
      answered: (packetId) => {
        const copy = session.copies[session.inFlight.get(packetId) ?? -1]
        if (copy?.qos === 2) standsAs(packetId, { is: 'sent', isOwed: false })
        else standsAs(packetId, { is: 'acknowledged', isKnown: false, at: performance.now() })
      },
      pubrel: (packetId) => {
        session.released.delete(packetId)
        // PUBREL shows that the PUBREC is stored: not even a crash repeats the message.
        const copy = session.copies[session.inFlight.get(packetId) ?? -1]
        if (copy?.standing.is === 'sent')
          standsAs(packetId, { is: 'acknowledged', isKnown: true, at: -Infinity })
      },
    })
    const session = emptySession(name, listener)
    return session
  }
}

function emptySession(name: string, listener: Listener): Session {
  return {
    name,
    listener,
    exists: false,
    isConnected: false,
    isStored: true,
    node: 0,
    filters: new Map(),
    connection: 0,
    cameAt: 0,
    leftAt: 0,
    copies: [],
    brought: new Map(),
    released: new Set(),
    inFlight: new Map(),
    order: [],
    raced: new Set(),
    isAfterCrash: false,
    isBehind: false,
    dropped: { min: 0, max: 0 },
  }
}

function newCopy(standing: Standing): Copy {
  const nothing = { received: 0, connection: -1, packetId: undefined, qos: 0 }
  return { standing, ...nothing, cameBySubscribe: false, isDueBesides: false, isDeliveredAtQos2: false }
}

function copyOf({ copies }: Session, number: number): Copy {
  const copy = copies[number]
  if (!copy) throw new Error(`no event ${number}`)
  return copy
}

function eventOf(events: readonly Event[], number: number): Event {
  const event = events[number]
  if (!event) throw new Error(`no event ${number}`)
  return event
}

function isOwed(standing: Standing | undefined): boolean {
  return standing?.is === 'sent' || standing?.is === 'waits'
}

function standingIn({ standings }: Limited, number: number): Standing {
  const standing = standings[number]
  if (!standing) throw new Error(`no event ${number}`)
  return standing
}

function about({ number, topic, keep, qos }: Event): string {
  return `${number} (${topic}, QoS ${qos}${keep === 'latest' ? ', retained' : ''})`
}
