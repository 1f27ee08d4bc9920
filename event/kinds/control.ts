import type { Static } from 'typebox'
import { exampleServices, id, instant, oneOf, open, Service, services } from '../schema.ts'
import { Type } from '../type.ts'
import type { ClassRow } from './class-row.ts'

const kinds = [
  {
    name: 'de.org.hub.v1.radio.control',
    suffix: 'control',
    about: 'a control state such as a traffic announcement',
  },
] as const

/**
 * Maximum number of characters of a control state's name. With names of 400 kB, one publisher filled half a gigabyte.
 */
const maxControlName = 500

export type ControlEvent = Static<typeof ControlEvent>
export const ControlEvent = Type.Object(
  {
    event: oneOf(kinds.map(({ name }) => name)),
    name: Type.String({
      maxLength: maxControlName,
      description: 'Which control bit; states with different names live side by side',
      examples: ['traffic-announcement'],
    }),
    state: Type.Boolean(),
    time: instant('When the state begins; the newest state of a name wins'),
    validUntil: instant('From then on receivers drop the state'),
    services,
    id,
  },
  {
    ...open,
    $id: 'ControlEvent',
    title: 'ControlEvent',
    description: 'A control bit such as a traffic announcement. Further fields are carried through.',
  },
)

/** States with a name and an end: design.md §7. */
export const control = {
  name: 'control',
  kinds,
  schema: ControlEvent,
  parts: [Service],
  doors: ['mqtt'],
  isPushed: false,
  timeField: 'time',
  slotField: 'name',
  endField: 'validUntil',
  keep: 'every',
  life: {
    holds: 'the last state per `name`',
    ends: 'with `"state": false`, at the latest at `validUntil`',
    afterReturn: 'every event that is still valid',
  },
  newerForm: {
    differences: ['dialect.time', 'dialect.validUntil'],
    dropped: ['created'],
    droppedOfServices: [],
  },
  example: {
    name: 'traffic-announcement',
    state: true,
    time: '2026-01-31T12:01:00+01:00',
    validUntil: '2026-01-31T12:06:00+01:00',
    services: exampleServices,
  },
  refused: [
    { change: { name: undefined }, path: '.name', errorCode: 'required.openapi.validation' },
    { change: { state: 'on' }, path: '.state', errorCode: 'type.openapi.validation' },
    {
      change: { validUntil: '2026-01-31T12:01:00+01:00' },
      path: '.validUntil',
      errorCode: 'event.expired',
    },
  ],
} as const satisfies ClassRow
