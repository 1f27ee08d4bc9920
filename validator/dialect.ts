import { cut } from '../event/cut.ts'
import {
  createErrorList,
  type ErrorItem,
  type ErrorList,
  errorItem,
  itemOf,
  pathOf,
  quote,
} from '../event/error.ts'
import { isLivestreamUrn, parseInstant, serviceTypes } from '../event/format.ts'
import { isRecord } from '../event/json.ts'
import { type EventClass, eventClasses, kindByName } from '../event/kind.ts'
import { maxServices } from '../event/schema.ts'
import type { Feed } from './feed/feed.ts'

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
  /** The classes of events that it is about. */
  classes: readonly EventClass[]
  /** The newer form, for people. */
  newer: string
  /** What becomes of it, for people. */
  becomes: string
  /** Brings an event into the document's form, in this one respect. */
  apply(draft: Draft, around: Surroundings): void
}

const roles: ReadonlyMap<unknown, string> = new Map([
  ['leader', 'choirleader'],
  ['choir', 'ensemble'],
])
const types: ReadonlyMap<unknown, string> = new Map([['EventLivestream', 'Event']])
/** `blocked` stands at each service as well: a rebroadcaster sends on what it received. */
const dropped = {
  track: ['created', 'name', 'topic', 'blocked'],
  control: ['created'],
  data: ['created'],
} as const

/** How long a control state lasts that does not say so, milliseconds. */
const controlLastsMs = 12 * 3_600_000
/** Longest creator that is kept, characters. */
const maxCreator = 500

/** The differences between the forms (open.md §2), in the order in which they are settled. */
export const differences: readonly Difference[] = [
  {
    code: 'dialect.type',
    sentence: 'The type of the service was replaced',
    classes: eventClasses,
    newer: '`EventLivestream` as `type` of a service',
    becomes: '`Event`',
    apply: (draft) => replace(draft, 'dialect.type', 'services', 'type', types),
  },
  {
    code: 'dialect.service',
    sentence: 'The service was completed from the livestream feed',
    classes: eventClasses,
    newer: 'a service with `id`, and without `type` or `externalId`',
    becomes: 'what is missing comes from the feed',
    apply: completeServices,
  },
  {
    code: 'dialect.role',
    sentence: 'The role of the contributor was replaced',
    classes: ['track'],
    newer: '`leader` or `choir` as `role` of a contributor',
    becomes: '`choirleader`, `ensemble`',
    apply: (draft) => replace(draft, 'dialect.role', 'contributors', 'role', roles),
  },
  {
    code: 'dialect.creator',
    sentence: 'The field is kept beside the event, and is not sent',
    classes: eventClasses,
    newer: '`creator`',
    becomes: 'kept beside the event',
    apply(draft) {
      const { creator } = draft.event
      if (creator === undefined) return
      if (creator !== null) {
        draft.creator = cut(typeof creator === 'string' ? creator : JSON.stringify(creator), maxCreator)
      }
      draft.drop('creator', 'dialect.creator')
    },
  },
  {
    code: 'dialect.dropped',
    sentence: 'The field was dropped',
    classes: eventClasses,
    newer: '`created`; of track events also a received `name`, `topic`, `blocked` and `services[].blocked`',
    becomes: 'dropped',
    apply(draft) {
      for (const field of dropped[draft.class]) {
        if (Object.hasOwn(draft.event, field)) draft.drop(field, 'dialect.dropped')
      }
      if (draft.class === 'track') dropBlocked(draft)
    },
  },
  {
    code: 'dialect.time',
    sentence: 'The time was taken from start',
    classes: ['control'],
    newer: '`start` of a control event, and no `time`',
    becomes: '`time`',
    apply(draft) {
      const { event } = draft
      if (Object.hasOwn(event, 'time') || !Object.hasOwn(event, 'start')) return
      const { start, ...rest } = event
      draft.event = { ...rest, time: start }
      draft.warn('dialect.time', '.time')
    },
  },
  {
    code: 'dialect.validUntil',
    sentence: 'The end was completed: 12 hours after time',
    classes: ['control'],
    newer: 'a control event without `validUntil`',
    becomes: '`validUntil` is `time` plus 12 hours',
    apply(draft) {
      const { event } = draft
      const time = typeof event.time === 'string' ? parseInstant(event.time) : undefined
      if (time === undefined || Object.hasOwn(event, 'validUntil')) return
      const validUntil = new Date(time + controlLastsMs).toISOString()
      // The end of a state in the last hours of the year 9999 has a year of five digits, and is no instant.
      if (parseInstant(validUntil) === undefined) return
      draft.event = { ...event, validUntil }
      draft.warn('dialect.validUntil', '.validUntil', validUntil)
    },
  },
]

const differencesOf = Object.fromEntries(
  eventClasses.map((cls) => [cls, differences.filter(({ classes }) => classes.includes(cls))]),
) as Record<EventClass, Difference[]>
const sentenceOf = new Map(differences.map(({ code, sentence }) => [code, sentence]))

/**
 * Brings an event into the document's form. Pure: `sent` stays as it is, and an event that has the document's form
 * comes out as the same object. What is no event, or has no known name, is left to the check of its shape.
 */
export function readDialect(sent: unknown, around: Surroundings): Read {
  const name = isRecord(sent) && around.dialects === 'all' ? sent.event : undefined
  const kind = typeof name === 'string' ? kindByName.get(name) : undefined
  if (!isRecord(sent) || kind === undefined) return { event: sent, ...nothingToSay }
  const draft = createDraft(sent, kind.class)
  for (const difference of differencesOf[kind.class]) difference.apply(draft, around)
  return draft.read()
}

const nothingToSay = { warnings: [], errors: [], creator: undefined, isCompletedFromFeed: false } as const

type Draft = ReturnType<typeof createDraft>

/** An event that is being read. `event` is replaced, never changed. */
function createDraft(sent: Record<string, unknown>, cls: EventClass) {
  let warnings: ErrorList | undefined
  let errors: ErrorList | undefined
  const draft = {
    class: cls,
    event: sent,
    creator: undefined as string | undefined,
    isCompletedFromFeed: false,

    warn(code: string, path: string, detail?: string): void {
      warnings ??= createErrorList('warnings')
      warnings.add(() => itemOf(code, sentenceOf.get(code) ?? code, path, detail))
    },
    refuse(make: () => ErrorItem): void {
      errors ??= createErrorList()
      errors.add(make)
    },
    /** Drops a field. The warning does not repeat its value. */
    drop(field: string, code: string): void {
      const { [field]: _, ...rest } = draft.event
      draft.event = rest
      draft.warn(code, pathOf(field))
    },
    /** Replaces the items of a list for which `change` returns another object. Leaves everything else to the schema. */
    map(
      field: string,
      most: number,
      change: (item: Record<string, unknown>, index: number) => Record<string, unknown>,
    ): void {
      const list = draft.event[field]
      if (!Array.isArray(list) || list.length > most) return
      let changed: unknown[] | undefined
      for (let index = 0; index < list.length; index++) {
        const item: unknown = list[index]
        if (!isRecord(item)) continue
        const made = change(item, index)
        if (made === item) continue
        changed ??= [...list]
        changed[index] = made
      }
      if (changed) draft.event = { ...draft.event, [field]: changed }
    },
    read(): Read {
      const { event, creator, isCompletedFromFeed } = draft
      return {
        ...{ event, creator, isCompletedFromFeed },
        ...{ warnings: warnings?.items() ?? [], errors: errors?.items() ?? [] },
      }
    },
  }
  return draft
}

/** Replaces values of one field in the items of a list. */
function replace(
  draft: Draft,
  code: string,
  list: string,
  field: string,
  names: ReadonlyMap<unknown, string>,
): void {
  draft.map(list, Number.POSITIVE_INFINITY, (item, index) => {
    const name = Object.hasOwn(item, field) ? names.get(item[field]) : undefined
    if (name === undefined) return item
    draft.warn(code, pathOf(list, index, field), `${item[field]} means ${name} here`)
    return { ...item, [field]: name }
  })
}

/** Drops `services[].blocked`. The check of the shape drops `services[].topic` of either form. */
function dropBlocked(draft: Draft): void {
  draft.map('services', maxServices, (service, index) => {
    if (!Object.hasOwn(service, 'blocked')) return service
    const { blocked: _received, ...rest } = service
    draft.warn('dialect.dropped', pathOf('services', index, 'blocked'))
    return rest
  })
}

/**
 * Completes services that name their livestream by `id` alone. Such a service needs the feed, where the document's form
 * would be judged without it. So the errors of the ownership are found here: no feed, no such livestream. A livestream
 * of another institution is left to the check of the ownership.
 */
function completeServices(draft: Draft, { feed, institutionId }: Surroundings): void {
  draft.map('services', maxServices, (service, index) => {
    const { id } = service
    const lacksType = !Object.hasOwn(service, 'type')
    const lacksExternalId = !Object.hasOwn(service, 'externalId')
    if (!(lacksType || lacksExternalId) || typeof id !== 'string' || !isLivestreamUrn(id)) return service
    if (!feed) {
      draft.refuse(() => errorItem('feed.unavailable', '.', 'try again later'))
      return service
    }
    const path = (field: string) => pathOf('services', index, field)
    const livestream = feed.byId.get(id)
    if (!livestream) {
      draft.refuse(() => errorItem('service.unknown', path('id'), id))
      return service
    }
    const type = types.get(livestream.type) ?? livestream.type
    const isOwn = livestream.institution.id === institutionId
    if (isOwn && !lacksType && service.type !== type && isServiceType(service.type)) {
      draft.refuse(() => {
        const detail = `${quote(service.type)} is not the type of ${id}, expected ${type}`
        return errorItem('service.ambiguous', path('type'), detail)
      })
    }
    const { externalId } = livestream
    draft.isCompletedFromFeed = true
    if (lacksType) draft.warn('dialect.service', path('type'), type)
    if (lacksExternalId) draft.warn('dialect.service', path('externalId'), externalId)
    return { ...service, ...(lacksType && { type }), ...(lacksExternalId && { externalId }) }
  })
}

function isServiceType(value: unknown): boolean {
  return serviceTypes.some((type) => type === value)
}
