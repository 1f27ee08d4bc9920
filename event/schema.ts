import type { Static, TSchema, TUnsafe } from 'typebox'
import { serviceTypes } from './format.ts'
import { Type } from './type.ts'

/*
 * What the schemas of all events share (service.md §2, design.md §7). Types, checks and the API description come from
 * these schemas. Those of the classes are in `event/kinds/`.
 */

export const open = { additionalProperties: true }
export const closed = { additionalProperties: false }

/** The services of examples: a livestream of the sample feed. */
export const exampleServices = [
  {
    type: 'PermanentLivestream',
    externalId: 'crid://kuestenfunk.example/410100/kw1',
    publisherId: 'urn:org:publisher:a15352e28c84d389',
    institutionId: 'urn:org:institution:75b657fb49856f7b',
  },
] as const

export type Service = Static<typeof Service>
export const Service = Type.Object(
  {
    type: oneOf(serviceTypes),
    externalId: Type.String({
      description: 'External identifier of the livestream, of the form `crid://<authority>/<id>`',
      examples: ['crid://kuestenfunk.example/410100/kw1'],
    }),
    publisherId: Type.String({
      description:
        'Core ID of the publisher, `urn:org:publisher:<id>`. Over HTTPS its external ID is accepted as well and converted.',
    }),
    institutionId: Type.Optional(
      Type.String({
        description:
          'Institution the livestream belongs to, `urn:org:institution:<id>`. Required over MQTT, where it must agree with the inbox topic.',
      }),
    ),
    id: Type.Optional(
      Type.String({
        description:
          'Identifier of the livestream, `urn:org:permanent-livestream:<id>`. Completed by the service.',
      }),
    ),
  },
  {
    ...open,
    $id: 'Service',
    title: 'Service',
    description:
      'A livestream that plays the element. Further fields are carried through, except for `topic`: the service says what became of the event there, and drops one that is sent.',
    examples: exampleServices,
  },
)

/** The field `id` of every event. */
export const id = Type.Optional(
  Type.String({
    description:
      'Inserted by the service as a string-formatted number; one sent by a publisher is replaced. Do not assume digits only.',
  }),
)

/** Maximum number of livestreams of one event. Each livestream costs a message. */
export const maxLivestreams = 200

/** Maximum number of entries of `services`. Each entry costs a check, even if several name one livestream. */
export const maxServices = 1000

/** The field `services` of every event. */
export const services = Type.Array(Type.Unsafe<Service>({ $ref: 'Service' }), {
  minItems: 1,
  maxItems: maxServices,
  description: `The playing livestreams, at most ${maxLivestreams} different ones; the same twice counts once`,
})

export function oneOf<T extends string>(values: readonly T[], options: object = {}): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: values, ...options })
}

/** The schema of an instant. `parseInstant` checks the format. */
export function instant(description: string) {
  return Type.String({
    format: 'instant',
    description: `${description}. ISO 8601 with UTC offset`,
    examples: ['2026-01-31T12:00:00+01:00'],
  })
}

/** Allows null too. An `anyOf` would give three errors for a wrong value. */
export function orNull<T extends TSchema & { type: string }>(schema: T): TUnsafe<Static<T> | null> {
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] })
}

export function listOrNull<T>($ref: string, description: string) {
  return Type.Optional(orNull(Type.Array(Type.Unsafe<T>({ $ref }), { description })))
}
