import { cut } from '../event/cut.ts'
import { type ErrorItem, ErrorList, errorItem, itemOf, pathOf, quote } from '../event/error.ts'
import { isLivestreamUrn, isUrn, livestreamKinds, parseInstant, serviceTypes } from '../event/format.ts'
import { isRecord } from '../event/json.ts'
import { type EventKind, eventKinds, kindByName } from '../event/kind.ts'
import { maxServices } from '../event/schema.ts'
import type { Feed } from './feed/feed.ts'
import type { Livestream } from './feed/livestream.ts'

/*
 * The two forms of an event (open.md §2). The service document has one; the newer contract of the field has another.
 * Over MQTT the hub reads both. It stores and sends the document's form, the same for every subscriber.
 */

/** Which forms the hub reads: `HUB_DIALECTS`. */
export type Dialects = 'all' | 'document'

/** An event in the document's form. Its shape is not checked yet. */
export interface Read {
  event: unknown
  /** What was completed, replaced or dropped. Bounded like a list of errors. */
  warnings: readonly ErrorItem[]
  /** Why the event cannot be brought into the document's form. */
  errors: readonly ErrorItem[]
  /** Who made the event, as its publisher says: the text, or the JSON of another value. At most 500 characters. */
  creator: string | undefined
  /** The event has values of the livestream feed, so it would differ after a change of the feed. */
  isCompletedFromFeed: boolean
}

/** What the newer form is compared with. */
interface Surroundings {
  dialects: Dialects
  /** Undefined: the hub has no livestream feed. */
  feed: Feed | undefined
  /** The institution of the inbox topic. */
  institutionId: string
}

/** One difference between the forms. */
interface Difference {
  /** The `errorCode` of its warnings. */
  code: string
  /** How its warnings begin. */
  sentence: string
  /** Only the classes of events that name it in their row have it. Absent: all have it. */
  isOfClass?: true
  /** The newer form, for people. */
  newer: string
  /** What becomes of it, for people. */
  becomes: string
  /** Brings an event into the document's form, in this one respect. */
  apply(draft: Draft): void
}

/** How long a control state lasts that does not say so, milliseconds. */
const controlLastsMs = 12 * 3_600_000
/** Longest creator that is kept, characters. */
const maxCreator = 500

/** The differences between the forms (open.md §2), in the order in which they are settled. */
export const differences: readonly Difference[] = [
  {
    code: 'dialect.type',
    sentence: 'The type of the service was replaced',
    newer: '`EventLivestream` as `type` of a service',
    becomes: '`Event`',
    apply: (draft) => mapItems(draft, 'services', replaceType),
  },
  {
    code: 'dialect.service',
    sentence: 'The service was completed from the livestream feed',
    newer: 'a service with `id`, and without `type` or `externalId`',
    becomes: 'what is missing comes from the feed',
    apply: (draft) => mapItems(draft, 'services', completeService),
  },
  {
    code: 'dialect.role',
    sentence: 'The role of the contributor was replaced',
    isOfClass: true,
    newer: '`leader` or `choir` as `role` of a contributor',
    becomes: '`choirleader`, `ensemble`',
    apply: (draft) => mapItems(draft, 'contributors', replaceRole),
  },
  {
    code: 'dialect.creator',
    sentence: 'The field is kept beside the event, and is not sent',
    newer: '`creator`',
    becomes: 'kept beside the event',
    apply(draft) {
      const { creator } = draft.event
      if (creator === undefined) return
      if (creator !== null) {
        draft.creator = cut(typeof creator === 'string' ? creator : JSON.stringify(creator), maxCreator)
      }
      drop(draft, 'creator', 'dialect.creator')
    },
  },
  {
    code: 'dialect.dropped',
    sentence: 'The field was dropped',
    newer: '`created`; of track events also a received `name`, `topic`, `blocked` and `services[].blocked`',
    becomes: 'dropped',
    apply(draft) {
      const { dropped, droppedOfServices } = draft.kind.newerForm
      for (const field of dropped) {
        if (Object.hasOwn(draft.event, field)) drop(draft, field, 'dialect.dropped')
      }
      if (droppedOfServices.length > 0) mapItems(draft, 'services', dropOfService)
    },
  },
  {
    code: 'dialect.time',
    sentence: 'The time was taken from start',
    isOfClass: true,
    newer: '`start` of a control event, and no `time`',
    becomes: '`time`',
    apply(draft) {
      const { event } = draft
      if (Object.hasOwn(event, 'time') || !Object.hasOwn(event, 'start')) return
      const { start } = event
      const changed = changeable(draft)
      delete changed.start
      changed.time = start
      warn(draft, 'dialect.time', '.time')
    },
  },
  {
    code: 'dialect.validUntil',
    sentence: 'The end was completed: 12 hours after time',
    isOfClass: true,
    newer: 'a control event without `validUntil`',
    becomes: '`validUntil` is `time` plus 12 hours',
    apply(draft) {
      const { event } = draft
      if (Object.hasOwn(event, 'validUntil')) return
      const time = typeof event.time === 'string' ? parseInstant(event.time) : undefined
      if (time === undefined) return
      const validUntil = new Date(time + controlLastsMs).toISOString()
      // The end of a state in the last hours of the year 9999 has a year of five digits, and is no instant.
      if (parseInstant(validUntil) === undefined) return
      changeable(draft).validUntil = validUntil
      warn(draft, 'dialect.validUntil', '.validUntil', validUntil)
    },
  },
]

const differencesOf = new Map(
  eventKinds.map((kind) => [
    kind,
    differences.filter(({ code, isOfClass }) => !isOfClass || kind.newerForm.differences.includes(code)),
  ]),
)
const sentenceOf = new Map(differences.map(({ code, sentence }) => [code, sentence]))

/**
 * Brings an event into the document's form. Pure: `sent` stays as it is, and an event that has the document's form
 * comes out as the same object. What is no event, or has no known name, is left to the check of its shape.
 */
export function readDialect(sent: unknown, around: Surroundings): Read {
  const name = isRecord(sent) && around.dialects === 'all' ? sent.event : undefined
  const kind = typeof name === 'string' ? kindByName.get(name) : undefined
  if (!isRecord(sent) || kind === undefined) return { event: sent, ...nothingToSay }
  const draft: Draft = {
    kind,
    around,
    sent,
    event: sent,
    creator: undefined,
    isCompletedFromFeed: false,
    warnings: new ErrorList('warnings'),
    errors: new ErrorList(),
  }
  for (const difference of differencesOf.get(kind) ?? []) difference.apply(draft)
  const { event, creator, isCompletedFromFeed, warnings, errors } = draft
  return { event, creator, isCompletedFromFeed, warnings: warnings.items(), errors: errors.items() }
}

const nothingToSay = { warnings: [], errors: [], creator: undefined, isCompletedFromFeed: false } as const

/** An event that is being read. `event` is what came, until `changeable` copies it. */
interface Draft {
  readonly kind: EventKind
  readonly around: Surroundings
  readonly sent: Record<string, unknown>
  event: Record<string, unknown>
  creator: string | undefined
  isCompletedFromFeed: boolean
  readonly warnings: ErrorList
  readonly errors: ErrorList
}

function warn(draft: Draft, code: string, path: string, detail?: string): void {
  draft.warnings.add(() => itemOf(code, sentenceOf.get(code) ?? code, path, detail))
}

/** The event, copied once: an event may have thousands of fields. */
function changeable(draft: Draft): Record<string, unknown> {
  if (draft.event === draft.sent) draft.event = { ...draft.sent }
  return draft.event
}

/** Drops a field. The warning does not repeat its value. */
function drop(draft: Draft, field: string, code: string): void {
  delete changeable(draft)[field]
  warn(draft, code, pathOf(field))
}

type NewerItem = Record<string, unknown>

/** Replaces the items of a list for which `change` returns another object. Leaves everything else to the schema. */
function mapItems(
  draft: Draft,
  field: 'services' | 'contributors',
  change: (item: NewerItem, index: number, draft: Draft) => NewerItem,
): void {
  const list = draft.event[field]
  if (!Array.isArray(list) || (field === 'services' && list.length > maxServices)) return
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item: unknown = list[index]
    if (!isRecord(item)) continue
    const made = change(item, index, draft)
    if (made === item) continue
    changed ??= [...list]
    changed[index] = made
  }
  if (changed) changeable(draft)[field] = changed
}

const types: ReadonlyMap<unknown, string> = new Map([['EventLivestream', 'Event']])
const roles: ReadonlyMap<unknown, string> = new Map([
  ['leader', 'choirleader'],
  ['choir', 'ensemble'],
])

function replaceType(service: NewerItem, index: number, draft: Draft): NewerItem {
  const type = types.get(service.type)
  if (type === undefined) return service
  warn(draft, 'dialect.type', pathOf('services', index, 'type'), `${service.type} means ${type} here`)
  return { ...service, type }
}

function replaceRole(contributor: NewerItem, index: number, draft: Draft): NewerItem {
  const role = roles.get(contributor.role)
  if (role === undefined) return contributor
  warn(draft, 'dialect.role', pathOf('contributors', index, 'role'), `${contributor.role} means ${role} here`)
  return { ...contributor, role }
}

/**
 * Drops fields such as `blocked`: a rebroadcaster sends on what it received. The check of the shape drops
 * `services[].topic` of either form.
 */
function dropOfService(service: NewerItem, index: number, draft: Draft): NewerItem {
  let kept = service
  for (const field of draft.kind.newerForm.droppedOfServices) {
    if (!Object.hasOwn(service, field)) continue
    const { [field]: _received, ...rest } = kept
    kept = rest
    warn(draft, 'dialect.dropped', pathOf('services', index, field))
  }
  return kept
}

/**
 * Completes a service that names its livestream by `id` alone. Such a service needs the feed, where the document's form
 * would be judged without it. So the errors of the ownership are found here: no feed, no such livestream. A livestream
 * of another institution is left to the check of the ownership.
 */
function completeService(service: NewerItem, index: number, draft: Draft): NewerItem {
  const { id } = service
  const lacksType = !Object.hasOwn(service, 'type')
  const lacksExternalId = !Object.hasOwn(service, 'externalId')
  if (!(lacksType || lacksExternalId) || typeof id !== 'string' || !isLivestreamUrn(id)) return service
  const { feed, institutionId } = draft.around
  if (!feed) {
    draft.errors.add(() => errorItem('feed.unavailable', '.', 'try again later'))
    return service
  }
  const path = (field: string) => pathOf('services', index, field)
  const livestream = feed.byId.get(id)
  if (!livestream) {
    draft.errors.add(() => errorItem('service.unknown', path('id'), id))
    return service
  }
  const type = typeOf(livestream)
  const isOwn = livestream.institution.id === institutionId
  if (isOwn && !lacksType && service.type !== type && isServiceType(service.type)) {
    draft.errors.add(() => {
      const detail = `${quote(service.type)} is not the type of ${id}, expected ${type}`
      return errorItem('service.ambiguous', path('type'), detail)
    })
  }
  const { externalId } = livestream
  draft.isCompletedFromFeed = true
  if (lacksType) warn(draft, 'dialect.service', path('type'), type)
  if (lacksExternalId) warn(draft, 'dialect.service', path('externalId'), externalId)
  // In this order: with the new fields behind the spread ones, V8 takes twenty times as long.
  return { type, externalId, ...service }
}

/** The type of a livestream. Where the feed has none, or one that no event may have, its id tells. */
function typeOf({ id, type }: Pick<Livestream, 'id' | 'type'>): string {
  const told = types.get(type) ?? type
  return isServiceType(told) ? told : (serviceTypes.find((one) => isUrn(id, livestreamKinds[one])) ?? told)
}

function isServiceType(value: unknown): boolean {
  return serviceTypes.some((type) => type === value)
}
