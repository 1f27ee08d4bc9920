import type { EventClass } from '../event/kind.ts'
import {
  checkTopicFilter,
  checkTopicName,
  feedbackTopic,
  filterContains,
  filterMatches,
  maxRadioTopicBytes,
  parseInbox,
  radioLevels,
} from '../event/topic.ts'
import type { Principal } from './principal.ts'

/** Whether a principal may publish to a topic, and the rule that decided this. */
export type PublishDecision =
  | { allowed: true; institutionId: string; cls?: EventClass; dryRun?: true; rule: PublishRule }
  | { allowed: false; code: 'topic.invalid' | 'topic.denied'; reason: string; rule: PublishRule }

/** The rules of publishing, in the order in which `mayPublish` checks them. */
type PublishRule =
  | 'topic.name'
  | 'subscriber.never-publishes'
  | 'publisher.inbox-only'
  | 'publisher.own-institution'
  | 'publisher.permitted-class'
  | 'publisher.own-inbox'

type SubscribeDecision =
  | { allowed: true; rule: SubscribeRule }
  | { allowed: false; rule: SubscribeRule; reason: string }

/** The rules of subscribing, in the order in which `maySubscribe` checks them. */
type SubscribeRule =
  | 'filter.form'
  | 'filter.reserved'
  | 'publisher.feedback-only'
  | 'publisher.own-feedback'
  | 'subscriber.radio-only'
  | 'filter.topic'
  | 'subscriber.not-permitted'
  | 'subscriber.permitted-filter'

/** The widest filter that a credential can permit to a subscriber (service.md §4.2). */
export const radioTree = 'radio/#'

/**
 * Decides whether a principal may send a PUBLISH or a will to a topic (design.md §7). An inbox topic without a class is
 * allowed here. The validator then checks the class of the event (error code `event.class`).
 */
export function mayPublish(principal: Principal, topic: string): PublishDecision {
  const inbox = parseInbox(topic)
  // An inbox has a proper name.
  const malformed = inbox ? undefined : checkTopicName(topic)
  if (malformed !== undefined) return refused('topic.name', malformed, 'topic.invalid')
  if (principal.role === 'subscriber') {
    return refused('subscriber.never-publishes', 'a subscriber never publishes')
  }
  if (inbox === undefined) {
    return refused(
      'publisher.inbox-only',
      'a publisher publishes only to inbox/{institutionId}, inbox/{institutionId}/{class} or inbox/{institutionId}/check',
    )
  }
  const { institutionId, cls } = inbox
  if (!principal.institutions.includes(institutionId)) {
    return refused('publisher.own-institution', 'the institution of the topic is not one of this credential')
  }
  if (cls === undefined) return { allowed: true, ...inbox, rule: 'publisher.own-inbox' }
  if (principal.classes.length > 0 && !principal.classes.includes(cls)) {
    return refused(
      'publisher.permitted-class',
      `this credential is limited to ${principal.classes.join(', ')}`,
    )
  }
  return { allowed: true, institutionId, cls, rule: 'publisher.own-inbox' }
}

/** Whether this principal may publish anything at all. */
export function publishes({ role }: Principal): boolean {
  return role === 'publisher'
}

/** Decides one filter of a SUBSCRIBE. Every topic that the filter can match must be permitted (design.md §8). */
export function maySubscribe(principal: Principal, filter: string): SubscribeDecision {
  const malformed = checkTopicFilter(filter)
  if (malformed !== undefined) return { allowed: false, rule: 'filter.form', reason: malformed }
  if (isReserved(filter)) {
    return {
      allowed: false,
      rule: 'filter.reserved',
      reason: 'nobody may subscribe to this part of the tree',
    }
  }
  return principal.role === 'publisher'
    ? publisherMaySubscribe(principal.institutions, filter)
    : subscriberMaySubscribe(principal.filters, filter)
}

/**
 * Decides whether a principal may get a message of this topic. The broker asks at delivery, because a subscription may
 * have been stored under other permissions (design.md §8).
 */
export function mayReceive(principal: Principal, topic: string): boolean {
  if (principal.role === 'publisher') return isOwnFeedback(principal.institutions, topic)
  return filterMatches(radioTree, topic) && principal.filters.some((filter) => filterMatches(filter, topic))
}

/** The only livestreams whose topics these filters of the radio tree can match. Undefined: any. */
export function livestreamsIn(filters: readonly string[]): ReadonlySet<string> | undefined {
  const named = filters.flatMap((filter) => filter.split('/')[1] ?? [])
  return named.some((level) => level === '#' || level === '+') ? undefined : new Set(named)
}

function publisherMaySubscribe(institutions: readonly string[], filter: string): SubscribeDecision {
  if (isOwnFeedback(institutions, filter)) return { allowed: true, rule: 'publisher.own-feedback' }
  const reason =
    'a publisher subscribes only to feedback/{institutionId} of its own institutions, no wildcards'
  return { allowed: false, rule: 'publisher.feedback-only', reason }
}

function subscriberMaySubscribe(permitted: readonly string[], filter: string): SubscribeDecision {
  // A second check: a credential that was damaged in the store must not open the inbox.
  if (!filterContains(radioTree, filter)) {
    return {
      allowed: false,
      rule: 'subscriber.radio-only',
      reason: `a subscriber reads only below ${radioTree}`,
    }
  }
  const unmatched = checkReadable(filter)
  if (unmatched !== undefined) return { allowed: false, rule: 'filter.topic', reason: unmatched }
  if (permitted.some((one) => filterContains(one, filter))) {
    return { allowed: true, rule: 'subscriber.permitted-filter' }
  }
  const reason = `not covered by what this credential permits: ${permitted.join(', ')}`
  return { allowed: false, rule: 'subscriber.not-permitted', reason }
}

/** Why no topic of the radio tree can match this filter, or undefined. */
function checkReadable(filter: string): string | undefined {
  const bytes = Buffer.byteLength(filter)
  if (bytes > maxRadioTopicBytes) return `it has ${bytes} bytes, and no topic more than ${maxRadioTopicBytes}`
  const named = filter.split('/').filter((level) => level !== '#').length
  if (named > radioLevels) return `it has ${named} levels, and no topic more than ${radioLevels}`
  return checkTopicName(filter.replace(/[+#]/g, 'x'))
}

/** Compares as text: a filter with a wildcard never equals a feedback topic. */
function isOwnFeedback(institutions: readonly string[], topic: string): boolean {
  return institutions.some((institution) => feedbackTopic(institution) === topic)
}

/**
 * No client may read the inbox, plugin work (design.md §8) or topics that begin with `$`. There are no shared
 * subscriptions (`$share/…`, service.md §4.2).
 */
function isReserved(filter: string): boolean {
  const [root = ''] = filter.split('/', 1)
  return root.startsWith('$') || root === 'inbox' || root === 'plugins'
}

function refused(
  rule: PublishRule,
  reason: string,
  code: 'topic.invalid' | 'topic.denied' = 'topic.denied',
): PublishDecision {
  return { allowed: false, code, reason, rule }
}
