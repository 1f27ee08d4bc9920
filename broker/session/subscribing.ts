import type { Journal } from '../../journal/journal.ts'
import type { Pacing } from '../../listener/pacing.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Client } from '../connection/client.ts'
import type { Resume } from '../connection/connection-events.ts'
import { encodeSuback, encodeUnsuback, type FiltersFrame } from '../connection/packets.ts'
import type { Qos } from '../connection/protocol.ts'
import type { Reading } from '../fanout/reading.ts'
import type { RetainedSending } from '../fanout/retained.ts'
import type { Denial, FilterRules } from '../filter-rules.ts'
import type { Session } from './session.ts'
import type { Routes } from './subscriptions.ts'

/** The return code of a refused filter [MQTT-3.9.3-2]. */
const refused = 0x80

/** Packets with more filters are paced like a large PUBLISH: each filter costs microseconds. */
const manyFilters = 10

export type Subscribing = ReturnType<typeof createSubscribing>

/**
 * Answers SUBSCRIBE and UNSUBSCRIBE. A persistent session is stored before the answer. SUBACK has a return code for
 * every filter, even a repeated one [MQTT-3.8.4-5].
 */
export function createSubscribing(parts: {
  grants: Grants
  reading: Reading
  retainedSending: RetainedSending
  rules: FilterRules
  pacing: Record<'small' | 'large', Pacing>
  log: Log
  metrics: Metrics
}) {
  const { grants, reading, retainedSending, rules, pacing, log, metrics } = parts

  return {
    /** Whether a packet with so many filters goes on now. If not, `resume` is called later. */
    enter({ connection }: Client, filters: number, resume: Resume): boolean {
      const asker = connection.principal?.username ?? ''
      const pace = filters <= manyFilters ? pacing.small : pacing.large
      return pace.enter(() => void resume('pacing'), { asker, isOver: () => !connection.isOpen })
    },
    subscribe,
    unsubscribe,
  }

  /** Never rejects: if the subscription cannot be stored, closes the connection without an answer. */
  async function subscribe(session: Session, { packetId, filters }: FiltersFrame): Promise<void> {
    const { connection } = session
    const denials: Denial[] = []
    const granted = new Set<string>()
    const returnCodes: number[] = []
    const since = retainedSending.granting(session)
    const granting = grants.change(session, ({ add, remove }) => {
      for (const { filter, qos } of filters) {
        const reason = rules.denialOf(session, filter)
        returnCodes.push(reason === undefined ? qos : refused)
        if (reason === undefined) {
          add(filter, qos)
          granted.add(filter)
        } else {
          remove(filter)
          denials.push({ filter, reason })
        }
      }
      rules.report(session, denials)
      if (!session.clean) reading.owe(session, retainedSending.owedFor(session, granted))
    })
    // No `await` for a clean session: SUBACK must go out before the first message.
    if (!session.clean && !(await stored(session, granting, 'subscription not stored'))) return
    connection?.send(encodeSuback(packetId, returnCodes))
    retainedSending.start(session, granted, since)
  }

  /** Never rejects: if the store fails, closes the connection without an answer. */
  async function unsubscribe(session: Session, { packetId, filters }: FiltersFrame): Promise<void> {
    const { connection } = session
    const names = filters.map(({ filter }) => filter)
    const ending = grants.end(session, names)
    if (!session.clean && !(await stored(session, ending, 'end of subscription not stored'))) return
    connection?.send(encodeUnsuback(packetId))
  }

  async function stored(
    session: Session,
    storing: Promise<void>,
    problem: 'subscription not stored' | 'end of subscription not stored',
  ): Promise<boolean> {
    const { connection, clientId } = session
    try {
      await storing
      return true
    } catch (error) {
      metrics.storeFailures.inc()
      log.error({ err: error, clientId }, problem)
      connection?.cut('error', problem)
      return false
    }
  }
}

type Grants = ReturnType<typeof createGrants>

/** Adds and removes the filters of sessions, in memory and in the store. */
export function createGrants(parts: {
  routes: Routes
  journal: Journal
  /** Stores a session in its present state. */
  storeSession: (session: Session) => Promise<void>
}) {
  const { routes, journal, storeSession } = parts

  return {
    /** Changes the filters in memory, for messages accepted from now on. Then stores a persistent session. */
    change(
      session: Session,
      work: (filters: { add: (filter: string, qos: Qos) => void; remove: (filter: string) => void }) => void,
    ): Promise<void> {
      work({
        add: (filter, qos) => add(session, filter, qos),
        remove: (filter) => remove(session, filter),
      })
      return session.clean ? Promise.resolve() : storeSession(session)
    },

    /**
     * Stores that filters of a persistent session have ended, then removes them from memory. If the store fails, keeps
     * them and rejects.
     */
    async end(session: Session, filters: readonly string[]): Promise<void> {
      const ending = filters.flatMap((filter) => session.subscriptions.get(filter) ?? [])
      for (const subscription of ending) subscription.isEnding = true
      try {
        if (ending.length > 0 && !session.clean) await storeSession(session)
      } catch (error) {
        for (const subscription of ending) subscription.isEnding = false
        throw error
      }
      const isEnding = (filter: string) => session.subscriptions.get(filter)?.isEnding
      for (const filter of filters) if (isEnding(filter)) remove(session, filter)
    },
  }

  function add(session: Session, filter: string, qos: Qos): void {
    const before = session.subscriptions.get(filter)
    if (before?.qos === qos && !before.isEnding) return
    remove(session, filter)
    // Behind an UNSUBSCRIBE that is still being stored, the subscription is a new one [MQTT-3.10.4-2].
    const isSame = before !== undefined && !before.isEnding && before.qos > 0 && qos > 0
    session.subscriptions.set(filter, { qos, since: isSame ? before.since : journal.head() })
    if (session.state === 'connected') routes.add(filter, session, qos)
  }

  function remove(session: Session, filter: string): void {
    const before = session.subscriptions.get(filter)
    if (!before) return
    session.subscriptions.delete(filter)
    if (session.state === 'connected') routes.remove(filter, session, before.qos)
  }
}
