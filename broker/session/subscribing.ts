import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { FiltersFrame } from '../connection/frames.ts'
import { encodeSuback, encodeUnsuback, type Qos } from '../connection/wire.ts'
import type { Reading } from '../fanout/reading.ts'
import type { RetainedSending } from '../fanout/retained.ts'
import type { Denial, FilterRules } from '../filter-rules.ts'
import type { Session } from './session.ts'
import type { Sessions } from './sessions.ts'

/** The return code of a refused filter [MQTT-3.9.3-2]. */
const refused = 0x80

/**
 * SUBSCRIBE and UNSUBSCRIBE: each filter is decided on its own, what was granted is stored, and then there
 * is one answer with a return code for every filter of the packet, repeated ones too [MQTT-3.8.4-5].
 */
export function createSubscribing(parts: {
  sessions: Sessions
  reading: Reading
  retainedSending: RetainedSending
  rules: FilterRules
  log: Log
  metrics: Metrics
}) {
  const { sessions, reading, retainedSending, rules, log, metrics } = parts

  return {
    /** Never rejects: a client whose subscription cannot be stored is cut off without an answer. */
    async subscribe(session: Session, { packetId, filters }: FiltersFrame): Promise<void> {
      const { connection } = session
      const denials: Denial[] = []
      const granted = new Set<string>()
      const since = retainedSending.granting(session)
      const returnCodes = filters.map(({ filter, qos }) => {
        const reason = grant(session, filter, qos)
        if (reason === undefined) {
          granted.add(filter)
          return qos
        }
        denials.push({ filter, reason })
        return refused
      })
      rules.report(session, denials)
      if (!session.clean) reading.owe(session, retainedSending.owedFor(session, granted))
      // Where nothing is stored the answer goes out before the first message of the subscription.
      const granting = sessions.storeSubscriptions(session)
      if (!session.clean && !(await stored(session, granting, 'subscription not stored'))) return
      connection?.send(encodeSuback(packetId, returnCodes))
      retainedSending.start(session, granted, since)
    },

    /** Never rejects. */
    async unsubscribe(session: Session, { packetId, filters }: FiltersFrame): Promise<void> {
      const { connection } = session
      const names = filters.map(({ filter }) => filter)
      if (session.clean) for (const filter of names) sessions.unsubscribe(session, filter)
      else {
        const ended = sessions.endSubscriptions(session, names)
        if (!(await stored(session, ended, 'end of subscription not stored'))) return
      }
      connection?.send(encodeUnsuback(packetId))
    },
  }

  /** Grants the filter in memory, or takes it away and says why. */
  function grant(session: Session, filter: string, qos: Qos): string | undefined {
    const reason = rules.denialOf(session, filter)
    if (reason === undefined) sessions.subscribe(session, filter, qos)
    else sessions.unsubscribe(session, filter)
    return reason
  }

  async function stored(session: Session, storing: Promise<void>, problem: string): Promise<boolean> {
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
