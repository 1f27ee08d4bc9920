import type { Static, TObject, TSchema, TUnsafe } from 'typebox'
import { serviceTypes, urnPattern } from './format.ts'
import { eventKinds } from './kind.ts'
import { Type } from './type.ts'

/*
 * The schemas of service.md §2 and design.md §7. Types, checks and the API description come from these schemas.
 */

const open = { additionalProperties: true }
const closed = { additionalProperties: false }

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
    examples: [
      {
        type: 'PermanentLivestream',
        externalId: 'crid://kuestenfunk.example/410100/kw1',
        publisherId: 'urn:org:publisher:a15352e28c84d389',
        institutionId: 'urn:org:institution:75b657fb49856f7b',
      },
    ],
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

const id = Type.Optional(
  Type.String({
    description:
      'Inserted by the service as a string-formatted number; one sent by a publisher is replaced. Do not assume digits only.',
  }),
)

/** Maximum number of livestreams of one event. Each livestream costs a message. */
export const maxLivestreams = 200

/** Maximum number of entries of `services`. Each entry costs a check, even if several name one livestream. */
export const maxServices = 1000

const services = Type.Array(Type.Unsafe<Service>({ $ref: 'Service' }), {
  minItems: 1,
  maxItems: maxServices,
  description: `The playing livestreams, at most ${maxLivestreams} different ones; the same twice counts once`,
})

export type TrackEvent = Static<typeof TrackEvent>
export const TrackEvent = Type.Object(
  {
    event: Type.Optional(
      oneOf(namesOf('track'), {
        description: 'Required over MQTT; over HTTPS it must equal the name in the URL',
      }),
    ),
    type: oneOf(['audio', 'commercial', 'jingle', 'live', 'music', 'news', 'traffic', 'weather'], {
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
    description: 'What a livestream plays now (`track.playing`) or next (`track.next`).',
    examples: [
      {
        event: 'de.org.hub.v1.radio.track.playing',
        type: 'music',
        start: '2026-01-31T12:00:00+01:00',
        length: 214,
        title: 'Ebbe und Flut',
        artist: 'Mira Hollund',
        playlistItemId: 'kw1-20260131-0042',
        services: [
          {
            type: 'PermanentLivestream',
            externalId: 'crid://kuestenfunk.example/410100/kw1',
            publisherId: 'urn:org:publisher:a15352e28c84d389',
            institutionId: 'urn:org:institution:75b657fb49856f7b',
          },
        ],
      },
    ],
  },
)

/**
 * Maximum number of characters of a control state's name. With names of 400 kB, one publisher filled half a gigabyte.
 */
const maxControlName = 500

export type ControlEvent = Static<typeof ControlEvent>
export const ControlEvent = Type.Object(
  {
    event: oneOf(namesOf('control')),
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

export type DataEvent = Static<typeof DataEvent>
export const DataEvent = Type.Object(
  {
    event: oneOf(namesOf('data')),
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

/** An event of any kind. */
export type HubEvent = TrackEvent | ControlEvent | DataEvent

/** All schemas, referenced ones first, for validators and API descriptions that resolve the `$ref`s. */
export const eventSchemas: readonly TObject[] = [
  Contributor,
  Service,
  Reference,
  MediaItem,
  EventPlugin,
  TrackEvent,
  ControlEvent,
  DataEvent,
]

function oneOf<T extends string>(values: readonly T[], options: object = {}): TUnsafe<T> {
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
function orNull<T extends TSchema & { type: string }>(schema: T): TUnsafe<Static<T> | null> {
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] })
}

function listOrNull<T>($ref: string, description: string) {
  return Type.Optional(orNull(Type.Array(Type.Unsafe<T>({ $ref }), { description })))
}

function namesOf(cls: 'track' | 'control' | 'data') {
  return eventKinds.filter((kind) => kind.class === cls).map((kind) => kind.name)
}
