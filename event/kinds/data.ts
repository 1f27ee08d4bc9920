import type { Static } from 'typebox'
import { exampleServices, id, instant, oneOf, open, Service, services } from '../schema.ts'
import { Type } from '../type.ts'
import type { ClassRow } from './class-row.ts'

const kinds = [
  {
    name: 'de.org.hub.v1.radio.data',
    suffix: 'data',
    about: 'radiotext, dynamic label and related data',
  },
] as const

export type DataEvent = Static<typeof DataEvent>
export const DataEvent = Type.Object(
  {
    event: oneOf(kinds.map(({ name }) => name)),
    start: instant('When the data begins to hold; the newest wins'),
    cycle: Type.Number({ exclusiveMinimum: 0, description: "The source's repeat interval in seconds" }),
    services,
    id,
  },
  {
    ...open,
    $id: 'DataEvent',
    title: 'DataEvent',
    description: 'Radiotext, dynamic label and related data. Further fields are carried through.',
  },
)

/** Texts beside the sound: design.md §7. */
export const data = {
  name: 'data',
  kinds,
  schema: DataEvent,
  parts: [Service],
  doors: ['mqtt'],
  isPushed: false,
  timeField: 'start',
  cycleField: 'cycle',
  keep: 'latest',
  life: {
    holds: 'the last value',
    ends: 'with the next one, repeated every `cycle` seconds',
    afterReturn: 'the newest per topic, if it is not older than `cycle` seconds',
  },
  newerForm: { differences: [], dropped: ['created'], droppedOfServices: [] },
  example: {
    start: '2026-01-31T12:00:00+01:00',
    cycle: 30,
    data: [
      { type: 'radiotext', id: 0, value: 'Sie hören Ebbe und Flut von Mira Hollund' },
      { type: 'rtdlplus', id: 1, value: 'Ebbe und Flut' },
      { type: 'rtdlplus', id: 4, value: 'Mira Hollund' },
    ],
    services: exampleServices,
  },
  refused: [
    { change: { start: undefined }, path: '.start', errorCode: 'required.openapi.validation' },
    { change: { cycle: 0 }, path: '.cycle', errorCode: 'exclusiveMinimum.openapi.validation' },
  ],
} as const satisfies ClassRow
