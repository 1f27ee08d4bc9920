import { mayPublish, type PublishDecision } from '../acl/access.ts'
import type { Principal } from '../acl/principal.ts'
import { errorItem } from '../event/error.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRareWarning } from '../telemetry/rare-warning.ts'
import { costOf } from '../validator/cost.ts'
import type { Pipeline } from '../validator/pipeline.ts'
import type { Receive, Received } from './receiving.ts'

/**
 * The MQTT door of the pipeline: an inbox topic becomes a submission; everything else is dropped,
 * counted, logged and reported to the publisher's own institutions (design.md §7).
 */
export function createIngest(parts: {
  pipeline: Pipeline
  maxTopicLevels: number
  log: Log
  metrics: Metrics
}): Receive {
  const { pipeline, maxTopicLevels, log, metrics } = parts
  const warnOfDenied = createRareWarning(log, 'publish denied and dropped')

  return async (received) => {
    const { principal, topic, payload } = received
    // It paid its first token when it was let in.
    const decided = (livestreams: number) => received.charge(costOf(payload.length, livestreams) - 1)
    const { at, started, alongside } = received
    const arrival = { at, started, alongside, decided }
    const decision = decide(principal, topic)
    if (decision.allowed) {
      const allowedClasses = principal.role === 'publisher' ? principal.classes : []
      const { institutionId, cls, dryRun } = decision
      const submission = { payload, institutionId, topicClass: cls, allowedClasses }
      const report = await (dryRun ? pipeline.tryOut : pipeline.submit)(submission, arrival)
      return report.outcome !== 'failed'
    }
    logDenied(received, decision.code, decision.reason)
    const institutions = readersOf(principal, topic)
    const outcome = decision.code === 'topic.invalid' ? 'invalid' : 'blocked'
    const error = errorItem(decision.code, 'topic', `${topic}: ${decision.reason}`)
    const report = await pipeline.refuse({ payload, error, outcome, institutions }, arrival)
    return report.outcome !== 'failed'
  }

  /** Whom a denied publish is reported to: the institution that it was for, if it is one of the publisher's own. */
  function readersOf(principal: Principal, topic: string): readonly string[] {
    if (principal.role !== 'publisher') return []
    const [root, institutionId = ''] = topic.split('/', 2)
    const isMeant = root === 'inbox' && principal.institutions.includes(institutionId)
    return isMeant ? [institutionId] : principal.institutions
  }

  function decide(principal: Principal, topic: string): PublishDecision {
    if (topic.split('/').length <= maxTopicLevels) return mayPublish(principal, topic)
    const reason = `it has more than ${maxTopicLevels} levels`
    return { allowed: false, code: 'topic.invalid', reason, rule: 'topic.name' }
  }

  function logDenied({ principal, clientId, topic, isWill }: Received, code: string, reason: string): void {
    metrics.publishesDenied.inc({ code })
    const { username } = principal
    warnOfDenied(username, { username, clientId, topic: topic.slice(0, 200), isWill, code, reason })
  }
}
