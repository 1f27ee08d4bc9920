/* Made by `npm run docs` from event/kinds/. */

/**
 * An event of any kind, as publishers send it
 */
export type HubEvent = TrackEvent | ControlEvent | DataEvent

/**
 * A track of a livestream: what plays now (`track.playing`), what plays next (`track.next`).
 */
export interface TrackEvent {
  /**
   * Required over MQTT; over HTTPS it must equal the name in the URL
   */
  event?: 'de.org.hub.v1.radio.track.playing' | 'de.org.hub.v1.radio.track.next'
  /**
   * Type of the element that triggered the event
   */
  type: 'audio' | 'commercial' | 'jingle' | 'live' | 'music' | 'news' | 'traffic' | 'weather'
  /**
   * When the element starts; events of a livestream are ordered by it. ISO 8601 with UTC offset
   */
  start: string
  /**
   * Estimated length in seconds. The start of the next element defines the end of this one.
   */
  length: number
  /**
   * Representative title for external use
   */
  title: string
  /**
   * Pre-formatted artist text
   */
  artist?: string | null
  /**
   * Full details of involved artists
   */
  contributors?: Contributor[] | null
  /**
   * The playing livestreams, at most 200 different ones; the same twice counts once
   *
   * @minItems 1
   * @maxItems 1000
   */
  services: [Service, ...Service[]]
  /**
   * Related external entities
   */
  references?: Reference[] | null
  /**
   * Identifier, unique within a publisher, that connects next and playing items
   */
  playlistItemId: string
  /**
   * References to tracks in music-database instances; ideally includes the common instance
   */
  hfdbIds?: string[] | null
  /**
   * Original ID in the publisher's system
   */
  externalId?: string | null
  /**
   * ISRC code if the element is a music track
   */
  isrc?: string | null
  /**
   * Album reference under which the ISRC was published
   */
  upc?: string | null
  /**
   * Reference to the original delivery, if available
   */
  mpn?: string | null
  /**
   * Media files such as cover or artist image
   */
  media?: MediaItem[] | null
  /**
   * For third-party metadata distribution or connected services
   */
  plugins?: EventPlugin[] | null
  /**
   * Inserted by the service as a string-formatted number; one sent by a publisher is replaced. Do not assume digits only.
   */
  id?: string
}
/**
 * An involved artist. Further fields are carried through.
 */
export interface Contributor {
  name: string
  role:
    | 'artist'
    | 'author'
    | 'composer'
    | 'performer'
    | 'conductor'
    | 'choirleader'
    | 'ensemble'
    | 'orchestra'
    | 'soloist'
    | 'producer'
    | 'engineer'
  /**
   * Reference to an entity in a central norm catalogue
   */
  normDb?: {
    type: string
    id: string
    [k: string]: unknown
  } | null
  /**
   * ISNI ID if available
   */
  isni?: string | null
  /**
   * Link to an external reference
   */
  url?: string | null
  [k: string]: unknown
}
/**
 * A livestream that plays the element. Further fields are carried through, except for `topic`: the service says what became of the event there, and drops one that is sent.
 */
export interface Service {
  type: 'Event' | 'Livestream' | 'PermanentLivestream'
  /**
   * External identifier of the livestream, of the form `crid://<authority>/<id>`
   */
  externalId: string
  /**
   * Core ID of the publisher, `urn:org:publisher:<id>`. Over HTTPS its external ID is accepted as well and converted.
   */
  publisherId: string
  /**
   * Institution the livestream belongs to, `urn:org:institution:<id>`. Required over MQTT, where it must agree with the inbox topic.
   */
  institutionId?: string
  /**
   * Identifier of the livestream, `urn:org:permanent-livestream:<id>`. Completed by the service.
   */
  id?: string
  [k: string]: unknown
}
/**
 * A related external entity.
 */
export interface Reference {
  type: 'Episode' | 'Section' | 'Publication' | 'Broadcast' | 'Show' | 'Season' | 'Article'
  id?: string
  externalId: string
  title?: string
  url?: string
  alternateIds?: string[]
}
/**
 * A media file such as a cover. Further fields are carried through.
 */
export interface MediaItem {
  type: 'cover' | 'artist' | 'anchor' | 'audio' | 'video'
  url: string
  /**
   * URL template containing a `{width}` placeholder
   */
  templateUrl?: string | null
  description: string
  attribution?: string | null
  /**
   * Marks fallback media that subscribers may filter out
   */
  isFallback?: boolean
  [k: string]: unknown
}
/**
 * Addresses one connected service. Further fields are carried through.
 */
export interface EventPlugin {
  /**
   * Type of the plugin target
   */
  type?: string
  id?: string
  /**
   * Set to true: the target does not receive this event
   */
  isDeactivated?: boolean
  [k: string]: unknown
}
/**
 * A control bit such as a traffic announcement. Further fields are carried through.
 */
export interface ControlEvent {
  event: 'de.org.hub.v1.radio.control'
  /**
   * Which control bit; states with different names live side by side
   */
  name: string
  state: boolean
  /**
   * When the state begins; the newest state of a name wins. ISO 8601 with UTC offset
   */
  time: string
  /**
   * From then on receivers drop the state. ISO 8601 with UTC offset
   */
  validUntil: string
  /**
   * The playing livestreams, at most 200 different ones; the same twice counts once
   *
   * @minItems 1
   * @maxItems 1000
   */
  services: [Service, ...Service[]]
  /**
   * Inserted by the service as a string-formatted number; one sent by a publisher is replaced. Do not assume digits only.
   */
  id?: string
  [k: string]: unknown
}
/**
 * Radiotext, dynamic label and related data. Further fields are carried through.
 */
export interface DataEvent {
  event: 'de.org.hub.v1.radio.data'
  /**
   * When the data begins to hold; the newest wins. ISO 8601 with UTC offset
   */
  start: string
  /**
   * The source's repeat interval in seconds
   */
  cycle: number
  /**
   * The playing livestreams, at most 200 different ones; the same twice counts once
   *
   * @minItems 1
   * @maxItems 1000
   */
  services: [Service, ...Service[]]
  /**
   * Inserted by the service as a string-formatted number; one sent by a publisher is replaced. Do not assume digits only.
   */
  id?: string
  [k: string]: unknown
}
/**
 * The events by the last level of their topics.
 */
export interface EventOfKind {
  playing: TrackEvent
  next: TrackEvent
  control: ControlEvent
  data: DataEvent
}
/**
 * What the name of an event says.
 */
export const eventKinds = {
  'de.org.hub.v1.radio.track.playing': {
    kind: 'playing',
    class: 'track',
    timeField: 'start',
    slotField: undefined,
    endField: undefined,
  },
  'de.org.hub.v1.radio.track.next': {
    kind: 'next',
    class: 'track',
    timeField: 'start',
    slotField: undefined,
    endField: undefined,
  },
  'de.org.hub.v1.radio.control': {
    kind: 'control',
    class: 'control',
    timeField: 'time',
    slotField: 'name',
    endField: 'validUntil',
  },
  'de.org.hub.v1.radio.data': {
    kind: 'data',
    class: 'data',
    timeField: 'start',
    slotField: undefined,
    endField: undefined,
  },
} as const
