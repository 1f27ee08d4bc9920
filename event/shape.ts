import { Ajv, type Options, type ValidateFunction } from 'ajv'
import formats from 'ajv-formats'
import type { TObject } from 'typebox'
import { type ErrorItem, ErrorList, errorItem, maxErrors, pathOf, quote } from './error.ts'
import { isInstitutionUrn, isLivestreamUrn, isPublisherUrn, parseInstant } from './format.ts'
import { isRecord } from './json.ts'
import {
  type EventClass,
  type EventKind,
  eventKinds,
  eventSchemas,
  type HubEvent,
  kindByName,
} from './kind.ts'
import { maxLivestreams, maxServices, type Service } from './schema.ts'
import { isOwnError, schemaError } from './schema-error.ts'
import { schemaOptions } from './schema-options.ts'

/** An event of valid shape, with its kind and its times. */
interface Shaped {
  event: HubEvent
  kind: EventKind
  /** Event time from the field `kind.timeField`: milliseconds since the epoch, perhaps with a fraction. */
  time: number
  /** When the event ends (`kind.endField`), milliseconds since the epoch. */
  expires: number | undefined
}

export interface ShapeOptions {
  /** Over MQTT, identifiers are URNs and `institutionId` is required (service.md §2.10). */
  protocol: 'mqtt' | 'https'
  /** Wall clock, milliseconds since the epoch. */
  now: number
  /** Name of the event in the URL. With this name, the event needs no `event` field (service.md §2.1). */
  urlEventName?: string
}

/**
 * Checks name, schema, number of livestreams, identifiers and expiry. Returns all errors, up to the bounds of an error
 * list. The returned event has an `event` field and no `services[].topic`.
 */
export function checkShape(value: unknown, options: ShapeOptions): Shaped | { errors: ErrorItem[] } {
  if (!isRecord(value)) {
    return {
      errors: [errorItem('type.openapi.validation', '.', `got ${quote(value)}, expected an object`)],
    }
  }
  const errors = new ErrorList()
  const kind = pickKind(value, options.urlEventName, errors)
  if (kind === undefined) return { errors: errors.items() }

  // The schema check gets the right name: `pickKind` has already reported a wrong one.
  const named = value.event === kind.name ? value : { ...value, event: kind.name }
  const event: unknown = named
  const validator = validators[kind.class]
  const fits = validator.quick(event)
  checkNumberOfServices(value.services, errors)
  if (!fits) reportSchemaErrors(validator.thorough(), named, errors)
  if (options.protocol === 'mqtt') checkIdentifiers(value.services, errors)
  const time = instantOf(value[kind.timeField])
  const expires = kind.endField === undefined ? undefined : instantOf(value[kind.endField])
  const expired = checkExpiry(value, kind, { time, expires, now: options.now })
  if (expired !== undefined) errors.add(() => expired)

  if (!fits || time === undefined || !errors.isEmpty) return { errors: errors.items() }
  return { event: withoutTopics(event), kind, time, expires }
}

/** The error of an event that names too many livestreams. */
export function tooManyLivestreams(count: number): ErrorItem {
  const detail = `${count} livestreams, expected at most ${maxLivestreams}`
  return errorItem('maxItems.openapi.validation', '.services', detail)
}

const known = eventKinds.map((kind) => kind.name).join(', ')

/** The kind by the name in the URL, else by the `event` field (service.md §4.1 rule 1). */
function pickKind(
  event: Record<string, unknown>,
  urlEventName: string | undefined,
  errors: ErrorList,
): EventKind | undefined {
  const urlKind = urlEventName === undefined ? undefined : kindByName.get(urlEventName)
  if (urlEventName !== undefined && urlKind === undefined) {
    errors.add(() =>
      errorItem('event.name', '.event', `${quote(urlEventName)} in the URL, expected one of ${known}`),
    )
    return undefined
  }
  // Only the event's own `event` field counts, not an inherited one.
  if (!Object.hasOwn(event, 'event')) {
    if (urlKind === undefined) {
      errors.add(() => errorItem('required.openapi.validation', '.event', `expected one of ${known}`))
    }
    return urlKind
  }
  const name = event.event
  if (typeof name !== 'string') {
    errors.add(() => errorItem('type.openapi.validation', '.event', `got ${quote(name)}, expected a string`))
    return urlKind
  }
  if (urlKind !== undefined) {
    if (name !== urlKind.name) {
      errors.add(() =>
        errorItem('event.name', '.event', `${quote(name)}, expected that of the URL, ${urlKind.name}`),
      )
    }
    return urlKind
  }
  const kind = kindByName.get(name)
  if (kind === undefined) {
    errors.add(() => errorItem('event.name', '.event', `${quote(name)}, expected one of ${known}`))
  }
  return kind
}

/**
 * Counts livestreams by external id. The count is too low if livestreams share an external id: the validator counts
 * again.
 */
function checkNumberOfServices(services: unknown, errors: ErrorList): void {
  if (!Array.isArray(services) || services.length <= maxLivestreams) return
  if (services.length > maxServices) {
    const detail = `${services.length} entries, expected at most ${maxServices}`
    errors.add(() => errorItem('maxItems.openapi.validation', '.services', detail))
    return
  }
  const names = new Set(services.map((service) => (isRecord(service) ? service.externalId : undefined)))
  if (names.size > maxLivestreams) errors.add(() => tooManyLivestreams(names.size))
}

/** An event with an end must end in the future, and after its beginning. */
function checkExpiry(
  event: Record<string, unknown>,
  { timeField, endField }: EventKind,
  { time, expires, now }: { time: number | undefined; expires: number | undefined; now: number },
): ErrorItem | undefined {
  if (endField === undefined || expires === undefined) return undefined
  const refuse = (why: string) => errorItem('event.expired', pathOf(endField), quote(event[endField]) + why)
  if (expires <= now) return refuse(` has passed, expected later than ${new Date(now).toISOString()}`)
  if (time === undefined || expires > time) return undefined
  return refuse(`, expected later than ${timeField}, ${quote(event[timeField])}`)
}

/** Drops `services[].topic`: a forged topic must reach no client (service.md §2.3). */
function withoutTopics(event: HubEvent): HubEvent {
  if (!event.services.some((service) => Object.hasOwn(service, 'topic'))) return event
  const services = event.services.map((service) => {
    const { topic: _forged, ...rest }: Service & { topic?: unknown } = service
    return rest
  })
  return { ...event, services }
}

/** Over MQTT the identifiers of a service are URNs, and each service names its institution (design.md §7). */
function checkIdentifiers(services: unknown, errors: ErrorList): void {
  if (!Array.isArray(services)) return // the schema check reports this
  for (const [index, service] of services.entries()) {
    if (!isRecord(service)) continue
    if (!Object.hasOwn(service, 'institutionId')) {
      const path = () => pathOf('services', index, 'institutionId')
      errors.add(() => errorItem('required.openapi.validation', path(), 'expected urn:org:institution:<id>'))
    }
    for (const { field, isValid, expected } of identifiers) {
      const id = service[field]
      if (typeof id !== 'string' || isValid(id)) continue
      const path = () => pathOf('services', index, field)
      errors.add(() => errorItem('identifier.urn', path(), `${quote(id)}, expected ${expected}`))
    }
  }
}

const identifiers = [
  { field: 'publisherId', isValid: isPublisherUrn, expected: 'urn:org:publisher:<id>' },
  { field: 'institutionId', isValid: isInstitutionUrn, expected: 'urn:org:institution:<id>' },
  {
    field: 'id',
    isValid: isLivestreamUrn,
    expected: 'urn:org:permanent-livestream:<id>, urn:org:livestream:<id> or urn:org:event-livestream:<id>',
  },
] as const

/** Reports all schema errors of an event that the quick validator has rejected. */
function reportSchemaErrors(thorough: Thorough, event: Record<string, unknown>, errors: ErrorList): void {
  // To collect all errors of a hostile list in one call would block the node. So items after the first `maxErrors` are
  // checked one by one.
  const head = { ...event }
  for (const field of thorough.lists.keys()) {
    const list = head[field]
    if (Array.isArray(list)) head[field] = list.slice(0, maxErrors)
  }
  report(thorough.event, head, [], errors)
  for (const [field, item] of thorough.lists) {
    const list = event[field]
    if (!Array.isArray(list)) continue
    for (let index = maxErrors; index < list.length; index++) {
      const value: unknown = list[index]
      if (item.quick(value)) continue
      if (errors.isFull) errors.omit()
      else report(item.thorough, value, [field, index], errors)
    }
  }
}

function report(
  validate: ValidateFunction,
  value: unknown,
  at: (string | number)[],
  errors: ErrorList,
): void {
  validate(value)
  for (const error of validate.errors ?? []) {
    if (isOwnError(error)) errors.add(() => schemaError(error, { at }))
  }
}

const ajvOptions: Options = {
  ...schemaOptions,
  schemas: [...eventSchemas],
  formats: {
    instant: (text: string) => readInstant(text) !== undefined,
    uri: formats.default.get('uri'),
  },
  // Inlined, the code of a service and of a contributor would be compiled for each list that holds them.
  inlineRefs: false,
}

const quickAjv = new Ajv(ajvOptions)
const thoroughAjv = new Ajv({
  ...ajvOptions,
  allErrors: true,
  verbose: true,
  messages: false,
})

interface Checks<T = unknown> {
  quick: ValidateFunction<T>
  thorough: ValidateFunction
}

interface Validator {
  quick: ValidateFunction<HubEvent>
  /** Made for the first event that is refused: to compile it takes longer than to compile `quick`. */
  thorough: () => Thorough
}

interface Thorough {
  event: ValidateFunction
  /** For each field that is a list: the check of one item. */
  lists: ReadonlyMap<string, Checks>
}

/** One for each class: its kinds share a schema. */
const validators = Object.fromEntries(
  [...new Map(eventKinds.map(({ class: cls, schema }) => [cls, schema]))].map(([cls, schema]) => [
    cls,
    compileEvent(schema),
  ]),
) as Record<EventClass, Validator>

function compileEvent(schema: TObject): Validator {
  let thorough: Thorough | undefined
  return {
    quick: quickAjv.compile<HubEvent>(schema),
    thorough: () => {
      thorough ??= compileThorough(schema)
      return thorough
    },
  }
}

function compileThorough(schema: TObject): Thorough {
  const lists = new Map<string, Checks>()
  for (const [field, property] of Object.entries(schema.properties)) {
    if ('items' in property && isRecord(property.items)) {
      const { items } = property
      lists.set(field, { quick: quickAjv.compile(items), thorough: thoroughAjv.compile(items) })
    }
  }
  return { event: thoroughAjv.compile(schema), lists }
}

function instantOf(value: unknown): number | undefined {
  return typeof value === 'string' ? readInstant(value) : undefined
}

/** Reads an instant. Remembers the last one, because the schema has just checked what `instantOf` reads. */
function readInstant(text: string): number | undefined {
  if (text !== last.text) last = { text, instant: parseInstant(text) }
  return last.instant
}

let last: { text: string; instant: number | undefined } = { text: '', instant: undefined }
