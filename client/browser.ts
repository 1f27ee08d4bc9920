/** The library as browsers load it. */

export { ClientError, type ErrorCode, errorCodes } from './errors.ts'
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
export type { HttpsPublisher, HttpsPublisherOptions, HttpsReport } from './https-publisher.ts'
export { parseInstant } from './instant.ts'
export type { ConnectionState } from './keep-subscribed.ts'
export type { Kind } from './kind.ts'
export type { ControlState, NowPlaying, Text, Track } from './now-playing.ts'
export type { NowPlayingOfAll } from './now-playing-of-all.ts'
export type { Publishable } from './publishable.ts'
export type { Publisher, PublisherOptions, Restored, Unknown } from './publisher.ts'
export { connectPublisher } from './publisher-browser.ts'
export { EventRefused, type Remark } from './refusal.ts'
export type { Report } from './report.ts'
export type { AnyMessage, Message, Subscriber, SubscriberEvents, SubscriberOptions } from './subscriber.ts'
export { connectSubscriber } from './subscriber-browser.ts'
