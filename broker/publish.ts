import { setImmediate as nextTurn } from 'node:timers/promises'
import { mayPublish, type PublishDecision } from '../acl/access.ts'
import type { Principal } from '../acl/principal.ts'
import { cut } from '../event/cut.ts'
import { errorItem } from '../event/error.ts'
import type { Pacing } from '../listener/pacing.ts'
import { costOf, type PublishRate } from '../listener/publish-rate.ts'
import type { Change } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRareWarning } from '../telemetry/rare-warning.ts'
import type { Charge } from '../validator/decide.ts'
import type { Pipeline } from '../validator/pipeline.ts'
import type { Client } from './connection/client.ts'
import type { ArrivedPublish, Resume } from './connection/connection-events.ts'
import { encodeAcknowledgement } from './connection/packets.ts'
import { packetType, type Qos } from './connection/protocol.ts'
import type { Incoming } from './incoming-qos2.ts'
import type { Access } from './login/access.ts'
import type { Session } from './session/session.ts'

/** A PUBLISH or will of a client. */
export interface Received {
  principal: Principal
  clientId: string
  topic: string
  payload: Buffer
  qos: Qos
  retain: boolean
  isWill: boolean
  /** When the message came in, by the wall clock, milliseconds since the epoch. */
  at: number
  /** When the last byte came in, or the wait for the publish rate ended, by `performance.now()`. */
  started: number
  /** Changes that must be stored with the decision, or not at all. */
  alongside: readonly Change[]
}

/**
 * Takes a message that a client publishes: decides by its topic and payload, charges the client, stores the decision,
 * and sends its messages and its report. Outcome `failed`: nothing was stored.
 */
export type Inbox = (received: Received, charge: Charge<Received>) => Promise<{ outcome: string }>

/**
 * A PUBLISH above this size can take tens of milliseconds. So each turn of the event loop decides about one at most,
 * for all connections together.
 */
const largeBytes = 16 * 1024

/** Handles a PUBLISH from its arrival to its acknowledgement (docs/architecture.md, "In over MQTT"). */
export function createPublishing(parts: {
  inbox: Inbox
  incoming: Incoming
  publishes: Access['publishes']
  pacing: Record<'small' | 'large', Pacing>
  rate: PublishRate
  clock: () => number
}) {
  const { inbox, incoming, publishes, pacing, rate, clock } = parts

  return {
    /** Whether the client may publish anything at all. */
    publishes: ({ connection: { principal } }: Client): boolean =>
      principal !== undefined && publishes(principal),
    enter,
    take,
    release,
    decideAndSettle,
  }

  /** Whether an arrived PUBLISH goes on now. If not, `resume` is called later. */
  function enter({ connection }: Client, bytes: number, resume: Resume): boolean {
    const username = connection.principal?.username ?? ''
    const isOver = () => !connection.isOpen
    const pace = bytes <= largeBytes ? pacing.small : pacing.large
    // `pay` runs only when the pacing lets the PUBLISH through. At that time, the cost of the previous large PUBLISH
    // has been charged.
    const pay = () => rate.enter(username, () => resume('rate'))
    return pace.enter(() => pay() && resume('pacing'), { asker: username, isOver }) && pay()
  }

  /** Decides about the PUBLISH at once, and acknowledges it after the client's earlier ones. */
  function take(client: Client, publish: ArrivedPublish): void {
    const { session, connection } = client
    if (!session) {
      connection.cut('error', 'a PUBLISH without session')
      return
    }
    const accepted =
      publish.qos === 2 ? acceptQos2(client, session, publish) : acceptPublish(session, publish, [])
    client.lastPublishSettled = acknowledgeInOrder(client, publish, accepted, client.lastPublishSettled)
  }

  /** Sends PUBCOMP when the packet identifier is free again. */
  async function release({ session, connection }: Client, packetId: number): Promise<void> {
    if (!session || (await incoming.release(session, packetId)))
      connection.answer(encodeAcknowledgement(packetType.pubcomp, packetId))
    else connection.cut('error', 'release not stored')
  }

  /** Accepts a packet once: a repetition gets the outcome of the first. */
  async function acceptQos2(client: Client, session: Session, publish: ArrivedPublish): Promise<boolean> {
    const before = incoming.find(session, publish)
    if (before !== undefined) return before
    if (!incoming.hasRoom(session)) {
      client.connection.cut('protocol', `${incoming.window} QoS 2 messages not released`)
      return false
    }
    const accepted = acceptPublish(session, publish, incoming.changes(session, publish))
    return incoming.add(session, publish, accepted)
  }

  function acceptPublish(
    { principal, clientId }: Session,
    { topic, payload, qos, retain, started }: ArrivedPublish,
    alongside: readonly Change[],
  ): Promise<boolean> {
    return decideAndSettle({
      principal,
      clientId,
      isWill: false,
      at: clock(),
      topic,
      payload,
      qos,
      retain,
      started,
      alongside,
    })
  }

  /** Decides about a PUBLISH or will, and settles the decision. False: nothing was stored. */
  async function decideAndSettle(received: Received): Promise<boolean> {
    const { outcome } = await inbox(received, charge)
    return outcome !== 'failed'
  }

  function charge({ principal, payload }: Received, livestreams: number): void {
    // `rate.enter` has taken the first token.
    rate.charge(principal.username, costOf(payload.length, livestreams) - 1, performance.now())
  }

  /**
   * Waits for the client's earlier PUBLISHes [MQTT-4.6.0-2]. False: this PUBLISH is not stored, and the connection is
   * closed. Never rejects.
   */
  async function acknowledgeInOrder(
    { connection }: Client,
    publish: ArrivedPublish,
    accepted: Promise<boolean>,
    before: Promise<boolean>,
  ): Promise<boolean> {
    // `then` comes before the wait: Node.js would report a rejection during the wait as unhandled.
    const failure = accepted.then(
      (isAccepted) => (isAccepted ? undefined : 'publish not stored'),
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
    await before
    const reason = await failure
    const { qos, packetId } = publish
    if (reason === undefined && qos > 0)
      connection.answer(encodeAcknowledgement(qos === 1 ? packetType.puback : packetType.pubrec, packetId))
    publish.finished()
    if (reason === undefined) return true
    // Earlier acknowledgements are sent at the end of this turn of the event loop.
    await nextTurn()
    connection.cut('error', reason)
    return false
  }
}

/** Resolves when all PUBLISHes of these clients are settled, also those that come meanwhile. */
export async function publishesSettled(clients: Iterable<Client>): Promise<void> {
  const last = () => [...clients].map(({ lastPublishSettled }) => lastPublishSettled)
  let settled: readonly unknown[] = []
  for (let now = last(); now.some((each, index) => each !== settled[index]); now = last()) {
    await Promise.all(now)
    settled = now
  }
}

/**
 * The inbox of the hub: the pipeline decides about permitted messages. Others are dropped, counted, logged and reported
 * to the publisher's own institutions (design.md §7).
 */
export function createInbox(parts: {
  pipeline: Pick<Pipeline, 'publish' | 'dryRun' | 'refuse'>
  maxTopicLevels: number
  log: Log
  metrics: Metrics
}): Inbox {
  const { pipeline, maxTopicLevels, log, metrics } = parts
  const warnOfDenied = createRareWarning(log, 'publish denied and dropped')

  return (received, charge) => {
    const { principal, topic, payload } = received
    const decision = decideTopic(principal, topic)
    if (!decision.allowed) return refuse(received, decision, charge)
    const allowedClasses = principal.role === 'publisher' ? principal.classes : []
    const { institutionId, cls, dryRun } = decision
    const submission = { payload, institutionId, topicClass: cls, allowedClasses }
    return dryRun
      ? pipeline.dryRun(submission, received, charge)
      : pipeline.publish(submission, received, charge)
  }

  function decideTopic(principal: Principal, topic: string): PublishDecision {
    if (topic.split('/').length <= maxTopicLevels) return mayPublish(principal, topic)
    const reason = `it has more than ${maxTopicLevels} levels`
    return { allowed: false, code: 'topic.invalid', reason, rule: 'topic.name' }
  }

  function refuse(
    received: Received,
    { code, reason }: Extract<PublishDecision, { allowed: false }>,
    charge: Charge<Received>,
  ) {
    const { principal, clientId, topic, payload, isWill } = received
    metrics.publishesDenied.inc({ code })
    const { username } = principal
    const isNotification = bridgeState.test(topic)
    if (!isNotification)
      warnOfDenied(username, { username, clientId, topic: cut(topic, 200), isWill, code, reason })
    const outcome = code === 'topic.invalid' ? 'invalid' : 'blocked'
    const error = errorItem(code, 'topic', `${topic}: ${reason}`)
    const institutions = isNotification ? [] : readersOf(principal, topic)
    return pipeline.refuse({ payload, error, outcome, institutions }, received, charge)
  }
}

/** A mosquitto bridge publishes its state here, unless its `notifications` are off. That is no mistake of a client. */
const bridgeState = /^\$SYS\/broker\/connection\/[^/]+\/state$/

/**
 * The institutions that get the report of a denied message (docs/decisions, "A denied publish is told to the
 * institution it was for").
 */
function readersOf(principal: Principal, topic: string): readonly string[] {
  if (principal.role !== 'publisher') return []
  const [root, institutionId = ''] = topic.split('/', 2)
  const isMeant = root === 'inbox' && principal.institutions.includes(institutionId)
  return isMeant ? [institutionId] : principal.institutions
}
