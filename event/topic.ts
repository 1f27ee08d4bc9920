import { isInstitutionUrn, isLivestreamUrn } from './format.ts'
import { type EventClass, type EventKind, eventKinds, isEventClass } from './kind.ts'

/** Maximum number of levels of a topic or filter. Deep topics crashed aedes before 1.2. */
const maxTopicLevels = 100

/** Topic to which a publisher sends events: one per institution, or per institution and class (design.md §7). */
export function inboxTopic(institutionId: string, cls?: EventClass): string {
  return cls === undefined ? `inbox/${institutionId}` : `inbox/${institutionId}/${cls}`
}

/** Topic for dry runs: the hub checks events there, and publishes none (design.md §7). */
export function checkTopic(institutionId: string): string {
  return `inbox/${institutionId}/check`
}

/** Topic of the reports for the publishers of an institution (service.md §4.2). */
export function feedbackTopic(institutionId: string): string {
  return `feedback/${institutionId}`
}

/** Topic of the validated events of one kind and livestream (service.md §4.2). */
export function radioTopic(livestreamId: string, kind: Pick<EventKind, 'suffix'>): string {
  return `radio/${livestreamId}/${kind.suffix}`
}

/** Whether events of any kind and livestream have a topic that this filter matches. */
export function matchesRadioTopic(filter: string): boolean {
  const [, livestream = '#'] = filter.split('/')
  if (!isWildcard(livestream) && !isLivestreamUrn(livestream)) return false
  return eventKinds.some((kind) => filterMatches(filter, radioTopic(livestream, kind)))
}

/** Levels of the deepest topic of the radio tree. */
export const radioLevels = Math.max(...eventKinds.map((kind) => radioTopic('', kind).split('/').length))

/** Maximum number of bytes of a radio topic, and of a filter that matches one. Livestream ids have a bounded length. */
export const maxRadioTopicBytes = 256

/** Reads an inbox topic. Undefined: the topic is no inbox. */
export function parseInbox(
  topic: string,
): { institutionId: string; cls?: EventClass; dryRun?: true } | undefined {
  const [root, institutionId, cls, ...rest] = topic.split('/', 4)
  if (root !== 'inbox' || institutionId === undefined || rest.length > 0) return undefined
  if (!isInstitutionUrn(institutionId)) return undefined
  if (cls === undefined) return { institutionId }
  if (topic === checkTopic(institutionId)) return { institutionId, dryRun: true }
  return isEventClass(cls) ? { institutionId, cls } : undefined
}

/** Why the hub can never have this topic (service.md §4.2, `topic.invalid`). Undefined: the topic is possible. */
export function checkTopicName(topic: string): string | undefined {
  // `checkLength` comes first: it refuses 65 kB of slashes cheaply.
  const reason = checkLength(topic)
  if (reason !== undefined) return reason
  if (/[+#]/.test(topic)) return 'a topic name has no wildcards'
  if (topic.includes('.')) return 'a dot is never used in a topic'
  if (invisible.test(topic)) return 'white space and control characters are not allowed'
  if (topic.split('/').includes('')) return 'a level is empty'
  return undefined
}

/** Why `filter` is malformed (MQTT 3.1.1 §4.7). Undefined: `filter` is well-formed. */
export function checkTopicFilter(filter: string): string | undefined {
  const reason = checkLength(filter)
  if (reason !== undefined) return reason
  if (filter.includes('\0')) return 'the null character is not allowed' // [MQTT-4.7.3-2]
  const levels = filter.split('/')
  for (const [index, level] of levels.entries()) {
    // [MQTT-4.7.1-2]
    if (level.includes('#') && level !== '#') return '# must fill its level'
    if (level === '#' && index < levels.length - 1) return '# must be the last level'
    // [MQTT-4.7.1-3]
    if (level.includes('+') && level !== '+') return '+ must fill its level'
  }
  return undefined
}

/** Whether a topic matches a well-formed filter (MQTT 3.1.1 §4.7). */
export function filterMatches(filter: string, topic: string): boolean {
  // [MQTT-4.7.2-1]
  if (isWildcard(filter[0]) && topic.startsWith('$')) return false
  // Where the level begins in each. No `split`: the hub asks this for each event.
  let from = 0
  let at = 0
  for (;;) {
    if (filter[from] === '#') return true
    const end = endOfLevel(filter, from)
    const topicEnd = endOfLevel(topic, at)
    if (filter[from] !== '+' && filter.slice(from, end) !== topic.slice(at, topicEnd)) return false
    // The parent matches too: `a/#` matches `a` (§4.7.1.2).
    if (topicEnd === topic.length) return filter.length === end || filter.slice(end) === '/#'
    if (end === filter.length) return false
    from = end + 1
    at = topicEnd + 1
  }
}

function endOfLevel(text: string, from: number): number {
  const end = text.indexOf('/', from)
  return end < 0 ? text.length : end
}

/**
 * Whether the filter `permitted` matches every topic that the filter `requested` can match (design.md §8). The answer
 * is exact, and false for a malformed filter.
 */
export function filterContains(permitted: string, requested: string): boolean {
  if (checkTopicFilter(permitted) !== undefined || checkTopicFilter(requested) !== undefined) return false
  // `x/#` also matches `x`. So `#` matches the same topics as `+/#`, and `/#` the same as `/+/#`: only the empty topic
  // would make a difference, and no topic is empty.
  const inner = requested === '#' || requested === '/#' ? requested.replace('#', '+/#') : requested
  if (isWildcard(permitted[0]) && inner.startsWith('$')) return false // [MQTT-4.7.2-1]

  const outerLevels = permitted.split('/')
  const innerLevels = inner.split('/')
  for (const [index, outer] of outerLevels.entries()) {
    const level = innerLevels[index]
    if (outer === '#') return true
    // `requested` also matches a topic that ends before this level. `permitted` does not match that topic.
    if (level === undefined || level === '#') return false
    if (outer !== '+' && outer !== level) return false
  }
  return innerLevels.length === outerLevels.length
}

/** Checks the rules for both topic names and filters: [MQTT-4.7.3-1], [MQTT-4.7.3-3] and the bound on levels. */
function checkLength(text: string): string | undefined {
  if (text === '') return 'it is empty'
  if (Buffer.byteLength(text, 'utf8') > 65_535) return 'it is longer than 65535 bytes'
  let levels = 1
  for (let at = text.indexOf('/'); at >= 0; at = text.indexOf('/', at + 1)) levels++
  if (levels > maxTopicLevels) return `it has more than ${maxTopicLevels} levels`
  return undefined
}

function isWildcard(level: string | undefined): boolean {
  return level === '+' || level === '#'
}

// White space of every kind, control and invisible formatting characters, lone surrogates.
const invisible = /[\s\p{Z}\p{Cc}\p{Cf}\p{Cs}]/u
