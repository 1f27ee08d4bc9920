/** The library as browsers load it. */

export type {
  Contributor,
  ControlEvent,
  DataEvent,
  EventPlugin,
  HubEvent,
  MediaItem,
  Reference,
  Service,
  TrackEvent,
} from './events.ts'
export { parseInstant } from './instant.ts'
export type { Kind } from './kind.ts'
export { EventRefused, type Remark } from './refusal.ts'
