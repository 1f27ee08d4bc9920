import type { Static } from 'typebox'
import { urnPattern } from '../format.ts'
import {
  closed,
  exampleServices,
  id,
  instant,
  listOrNull,
  oneOf,
  open,
  orNull,
  Service,
  services,
} from '../schema.ts'
import { Type } from '../type.ts'
import { type ClassRow, shortName } from './class-row.ts'

const kinds = [
  {
    name: 'de.org.hub.v1.radio.track.playing',
    suffix: 'track/playing',
    about: 'what plays now',
    isNow: true,
  },
  {
    name: 'de.org.hub.v1.radio.track.next',
    suffix: 'track/next',
    about: 'what plays next',
  },
] as const

const example = {
  type: 'music',
  start: '2026-01-31T12:00:00+01:00',
  length: 214,
  title: 'Ebbe und Flut',
  artist: 'Mira Hollund',
  playlistItemId: 'kw1-20260131-0042',
  services: exampleServices,
}

export type Contributor = Static<typeof Contributor>
export const Contributor = Type.Object(
  {
    name: Type.String(),
    role: oneOf([
      'artist',
      'author',
      'composer',
      'performer',
      'conductor',
      'choirleader',
      'ensemble',
      'orchestra',
      'soloist',
      'producer',
      'engineer',
    ]),
    normDb: Type.Optional(
      orNull(
        Type.Object(
          { type: Type.String(), id: Type.String() },
          { ...open, description: 'Reference to an entity in a central norm catalogue' },
        ),
      ),
    ),
    isni: Type.Optional(orNull(Type.String({ description: 'ISNI ID if available' }))),
    url: Type.Optional(orNull(Type.String({ description: 'Link to an external reference' }))),
  },
  {
    ...open,
    $id: 'Contributor',
    title: 'Contributor',
    description: 'An involved artist. Further fields are carried through.',
    examples: [{ name: 'Mira Hollund', role: 'artist' }],
  },
)

export type Reference = Static<typeof Reference>
export const Reference = Type.Object(
  {
    type: oneOf(['Episode', 'Section', 'Publication', 'Broadcast', 'Show', 'Season', 'Article']),
    id: Type.Optional(Type.String({ pattern: urnPattern })),
    externalId: Type.String({ pattern: '^(c|b)rid://.+$' }),
    title: Type.Optional(Type.String()),
    url: Type.Optional(Type.String({ format: 'uri' })),
    alternateIds: Type.Optional(Type.Array(Type.String())),
  },
  {
    ...closed,
    $id: 'Reference',
    title: 'Reference',
    description: 'A related external entity.',
    examples: [
      { type: 'Show', externalId: 'crid://kuestenfunk.example/shows/abendbrise', title: 'Abendbrise' },
    ],
  },
)

export type MediaItem = Static<typeof MediaItem>
export const MediaItem = Type.Object(
  {
    type: oneOf(['cover', 'artist', 'anchor', 'audio', 'video']),
    url: Type.String(),
    templateUrl: Type.Optional(
      orNull(Type.String({ description: 'URL template containing a `{width}` placeholder' })),
    ),
    description: Type.String(),
    attribution: Type.Optional(orNull(Type.String())),
    isFallback: Type.Optional(
      Type.Boolean({ description: 'Marks fallback media that subscribers may filter out' }),
    ),
  },
  {
    ...open,
    $id: 'MediaItem',
    title: 'MediaItem',
    description: 'A media file such as a cover. Further fields are carried through.',
    examples: [{ type: 'cover', url: 'https://media.example/cover.jpg', description: 'Cover of the album' }],
  },
)

export type EventPlugin = Static<typeof EventPlugin>
export const EventPlugin = Type.Object(
  {
    type: Type.Optional(Type.String({ description: 'Type of the plugin target' })),
    id: Type.Optional(Type.String()),
    isDeactivated: Type.Optional(
      Type.Boolean({ description: 'Set to true: the target does not receive this event' }),
    ),
  },
  {
    ...open,
    $id: 'EventPlugin',
    title: 'EventPlugin',
    description: 'Addresses one connected service. Further fields are carried through.',
    examples: [{ type: 'dts', isDeactivated: true }],
  },
)

export const trackTypes = [
  'audio',
  'commercial',
  'jingle',
  'live',
  'music',
  'news',
  'traffic',
  'weather',
] as const

export type TrackEvent = Static<typeof TrackEvent>
export const TrackEvent = Type.Object(
  {
    event: Type.Optional(
      oneOf(
        kinds.map(({ name }) => name),
        {
          description: 'Required over MQTT; over HTTPS it must equal the name in the URL',
        },
      ),
    ),
    type: oneOf(trackTypes, {
      description: 'Type of the element that triggered the event',
    }),
    start: instant('When the element starts; events of a livestream are ordered by it'),
    length: Type.Number({
      exclusiveMinimum: 0,
      description: 'Estimated length in seconds. The start of the next element defines the end of this one.',
    }),
    title: Type.String({ description: 'Representative title for external use' }),
    artist: Type.Optional(orNull(Type.String({ description: 'Pre-formatted artist text' }))),
    contributors: listOrNull<Contributor>('Contributor', 'Full details of involved artists'),
    services,
    references: listOrNull<Reference>('Reference', 'Related external entities'),
    playlistItemId: Type.String({
      description: 'Identifier, unique within a publisher, that connects next and playing items',
    }),
    hfdbIds: Type.Optional(
      orNull(
        Type.Array(Type.String(), {
          description:
            'References to tracks in music-database instances; ideally includes the common instance',
        }),
      ),
    ),
    externalId: Type.Optional(orNull(Type.String({ description: "Original ID in the publisher's system" }))),
    isrc: Type.Optional(orNull(Type.String({ description: 'ISRC code if the element is a music track' }))),
    upc: Type.Optional(
      orNull(Type.String({ description: 'Album reference under which the ISRC was published' })),
    ),
    mpn: Type.Optional(
      orNull(Type.String({ description: 'Reference to the original delivery, if available' })),
    ),
    media: listOrNull<MediaItem>('MediaItem', 'Media files such as cover or artist image'),
    plugins: listOrNull<EventPlugin>(
      'EventPlugin',
      'For third-party metadata distribution or connected services',
    ),
    id,
  },
  {
    ...closed,
    $id: 'TrackEvent',
    title: 'TrackEvent',
    description: `A track of a livestream: ${kinds.map(({ name, about }) => `${about} (\`${shortName(name)}\`)`).join(', ')}.`,
    examples: [{ event: kinds[0].name, ...example }],
  },
)

/** The elements of a programme: service.md §2. */
export const track = {
  name: 'track',
  kinds,
  schema: TrackEvent,
  parts: [Contributor, Service, Reference, MediaItem, EventPlugin],
  doors: ['mqtt', 'https'],
  isPushed: true,
  timeField: 'start',
  keep: 'latest',
  life: {
    holds: 'the last value',
    ends: 'with the next one; `length` is an estimate',
    afterReturn: 'the newest per topic',
  },
  newerForm: {
    differences: ['dialect.role'],
    dropped: ['created', 'name', 'topic', 'blocked'],
    droppedOfServices: ['blocked'],
  },
  example,
  refused: [
    { change: { title: undefined }, path: '.title', errorCode: 'required.openapi.validation' },
    { change: { length: 0 }, path: '.length', errorCode: 'exclusiveMinimum.openapi.validation' },
    { change: { genre: 'Pop' }, path: '.genre', errorCode: 'additionalProperties.openapi.validation' },
  ],
} as const satisfies ClassRow
