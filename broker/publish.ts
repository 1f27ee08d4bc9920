import { mayPublish, type PublishDecision } from '../acl/access.ts'
import type { Principal } from '../acl/principal.ts'
import { errorItem } from '../event/error.ts'
import { costOf, type createPublishRate } from '../listener/publish-rate.ts'
import type { createTurns } from '../listener/turns.ts'
import type { createRunningWork } from '../store/running-work.ts'
import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRareWarning } from '../telemetry/rare-warning.ts'
import type { Arrival } from '../validator/decide.ts'
import type { Decided, Pipeline } from '../validator/pipeline.ts'
import type { Client } from './connection/client.ts'
import type { ArrivedPublish, Resume } from './connection/connection-events.ts'
import { encodePuback, type Qos } from './connection/wire.ts'
import type { Session } from './session/session.ts'
import { incomingChange, incomingPrefix } from './session/session-record.ts'

/** A PUBLISH or will of a client. */
export interface Received {
  principal: Principal
  clientId: string
  topic: string
  payload: Buffer
  qos: Qos
  retain: boolean
  isWill: boolean
  /** Wall clock, milliseconds since the epoch. */
  at: number
  /** `performance.now()` at the arrival of its last byte. */
  started: number
  /** Must be stored with the decision, or not at all. */
  alongside: readonly Change[]
}

/** Where it goes what clients publish. What it decides is settled in the same turn. */
export interface Inbox<Decision extends { livestreams: number }> {
  /** Decides by the topic and the payload. */
  decide(received: Received): Decision
  /** Appends, fans out and reports. `failed`: nothing was stored. */
  settle(decided: Decision): Promise<{ outcome: string }>
}

/** A PUBLISH of more bytes may cost tens of milliseconds: of all connections, one is decided in a turn of the event loop. */
const largeBytes = 16 * 1024

/**
 * The way of a PUBLISH: its frame waits for its turn and for the publish rate; the inbox decides by its topic and payload; an
 * accepted event is appended to the journal, fanned out and reported; the client gets its acknowledgement.
 */
export function createPublishing<Decision extends { livestreams: number }>(parts: {
  store: Store
  inbox: Inbox<Decision>
  /** Turns of packets, small ones and large ones. */
  turns: Record<'small' | 'large', ReturnType<typeof createTurns>>
  rate: ReturnType<typeof createPublishRate>
  /** Received QoS 2 messages one client may leave unreleased. */
  incomingWindow: number
  /** What must be over before the store is closed. */
  running: ReturnType<typeof createRunningWork>
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { store, inbox, turns, rate, incomingWindow, running, clock, log, metrics } = parts

  return {
    /** The frame is here: whether it may go on now. If not, `resume` is called when it may. */
    enter(username: string, bytes: number, resume: Resume, isOver: () => boolean): boolean {
      const turn = bytes <= largeBytes ? turns.small : turns.large
      // In its turn, so that what the event before it cost has been charged by then.
      const pay = () => rate.enter(username, () => resume('rate'))
      return turn.enter(() => pay() && resume('turn'), { asker: username, isOver }) && pay()
    },

    /** It goes on: it is decided at once, in the order of arrival, and acknowledged in its turn. */
    take(client: Client, publish: ArrivedPublish): void {
      const { session } = client
      if (!session) {
        client.connection.cut('error', 'a PUBLISH without session')
        return
      }
      const accepted =
        publish.qos === 2 ? acceptOnce(client, session, publish) : acceptFrom(session, publish, [])
      client.acknowledged = acknowledge(client, publish, accepted, client.acknowledged)
      if (publish.qos === 2) client.taken.push(client.acknowledged)
      running.add(client.acknowledged)
    },

    accept,

    /** Whether a QoS 2 packet identifier is received and not released; one on its way is waited for. */
    async isIncoming(session: Session, packetId: number): Promise<boolean> {
      await session.processing.get(packetId)?.catch(() => undefined)
      return session.incoming.has(packetId)
    },

    /**
     * Frees a QoS 2 packet identifier. PUBCOMP lets the client use it for a new message, so the release is
     * stored first [MQTT-4.3.3-2]; when that fails the connection is closed, and this rejects.
     */
    async release(session: Session, packetId: number): Promise<void> {
      const { clientId } = session
      try {
        if (!session.clean) await store.commit([{ del: incomingPrefix(clientId) + packetId }])
        session.incoming.delete(packetId)
      } catch (error) {
        metrics.storeFailures.inc()
        log.error({ err: error, clientId }, 'release of a QoS 2 message not stored')
        session.owner?.cut('error', 'release not stored')
        throw error
      }
    },
  }

  /** QoS 2: a retransmission is recognised by its packet identifier until that is released [MQTT-4.3.3-2]. */
  async function acceptOnce(client: Client, session: Session, publish: ArrivedPublish): Promise<boolean> {
    const { packetId } = publish
    if (session.incoming.has(packetId)) return true
    const underway = session.processing.get(packetId)
    if (underway) return underway
    if (session.incoming.size + session.processing.size >= incomingWindow) {
      client.connection.cut('protocol', `${incomingWindow} QoS 2 messages not released`)
      return false
    }
    // A clean session does not outlive its connection: there is nothing to store.
    const alongside = session.clean ? [] : [incomingChange(session, packetId)]
    const processing = acceptFrom(session, publish, alongside)
    session.processing.set(packetId, processing)
    try {
      const isAccepted = await processing
      if (isAccepted) session.incoming.add(packetId)
      return isAccepted
    } finally {
      session.processing.delete(packetId)
    }
  }

  function acceptFrom(
    { principal, clientId }: Session,
    { topic, payload, qos, retain, started }: ArrivedPublish,
    alongside: readonly Change[],
  ): Promise<boolean> {
    const from = { principal, clientId, isWill: false, at: clock(), started, alongside }
    return accept({ topic, payload, qos, retain, ...from })
  }

  /** From the topic to the report. True: it may be acknowledged; false: nothing was stored. */
  async function accept(received: Received): Promise<boolean> {
    const { principal, payload } = received
    const decided = inbox.decide(received)
    // It paid its first token when it was let in.
    rate.charge(principal.username, costOf(payload.length, decided.livestreams) - 1, performance.now())
    const { outcome } = await inbox.settle(decided)
    return outcome !== 'failed'
  }

  /**
   * Acknowledges a PUBLISH after those before it [MQTT-4.6.0-2]; at QoS 2 Aedes sends the PUBREC. If nothing was stored, closes
   * the connection instead and resolves to false. Never rejects.
   */
  async function acknowledge(
    { connection }: Client,
    publish: ArrivedPublish,
    accepted: Promise<boolean>,
    before: Promise<boolean>,
  ): Promise<boolean> {
    try {
      // Awaited below, in its turn; until then it must not count as unhandled.
      accepted.catch(() => undefined)
      await before
      const isAccepted = await accepted
      if (!isAccepted) connection.cut('error', 'publish not stored')
      else if (publish.qos === 1) connection.send(encodePuback(publish.packetId))
      return isAccepted
    } catch (error) {
      connection.cut('error', error instanceof Error ? error.message : String(error))
      return false
    } finally {
      connection.finished(publish)
    }
  }
}

/**
 * The inbox of the hub: a topic of an institution leads to its pipeline. Everything else is dropped, counted, logged and
 * reported to the publisher's own institutions (design.md §7).
 */
export function createInbox(parts: {
  pipeline: Pick<Pipeline, 'decide' | 'tryOut' | 'refuse' | 'settle'>
  maxTopicLevels: number
  log: Log
  metrics: Metrics
}): Inbox<Decided> {
  const { pipeline, maxTopicLevels, log, metrics } = parts
  const warnOfDenied = createRareWarning(log, 'publish denied and dropped')

  return {
    decide(received) {
      const { principal, topic, payload, at, started, alongside } = received
      const arrival = { at, started, alongside }
      const decision = decideTopic(principal, topic)
      if (!decision.allowed) return refuse(received, decision, arrival)
      const allowedClasses = principal.role === 'publisher' ? principal.classes : []
      const { institutionId, cls, dryRun } = decision
      const submission = { payload, institutionId, topicClass: cls, allowedClasses }
      return dryRun ? pipeline.tryOut(submission, arrival) : pipeline.decide(submission, arrival)
    },
    settle: pipeline.settle,
  }

  function decideTopic(principal: Principal, topic: string): PublishDecision {
    if (topic.split('/').length <= maxTopicLevels) return mayPublish(principal, topic)
    const reason = `it has more than ${maxTopicLevels} levels`
    return { allowed: false, code: 'topic.invalid', reason, rule: 'topic.name' }
  }

  function refuse(
    { principal, clientId, topic, payload, isWill }: Received,
    { code, reason }: Extract<PublishDecision, { allowed: false }>,
    arrival: Arrival,
  ): Decided {
    metrics.publishesDenied.inc({ code })
    const { username } = principal
    warnOfDenied(username, { username, clientId, topic: topic.slice(0, 200), isWill, code, reason })
    const outcome = code === 'topic.invalid' ? 'invalid' : 'blocked'
    const error = errorItem(code, 'topic', `${topic}: ${reason}`)
    const institutions = readersOf(principal, topic)
    return pipeline.refuse({ payload, error, outcome, institutions }, arrival)
  }
}

/** Whom a denied publish is reported to: the institution that it was for, if it is one of the publisher's own. */
function readersOf(principal: Principal, topic: string): readonly string[] {
  if (principal.role !== 'publisher') return []
  const [root, institutionId = ''] = topic.split('/', 2)
  const isMeant = root === 'inbox' && principal.institutions.includes(institutionId)
  return isMeant ? [institutionId] : principal.institutions
}
