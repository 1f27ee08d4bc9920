import type { Attack, Force, Target } from './attack.ts'
import { changingFeed } from './changing-feed.ts'
import { eventsInChunks, loginInChunks } from './chunked-body.ts'
import { emptyServices, numbersAsIds, unknownProperties } from './expensive-events.ts'
import { halfHandshakes, handshakes, largeWills, wrongPasswords } from './floods/connection.ts'
import {
  deniedPublishFlood,
  deniedSubscribeFlood,
  emptyPublishFlood,
  manyFiltersFlood,
  pingFlood,
  pubackFlood,
  pubrelFlood,
  subscribeFlood,
  unsubscribeFlood,
} from './floods/packets.ts'
import {
  asyncapiReads,
  expectations,
  livestreamReads,
  manyHeaders,
  metricsReads,
  openapiReads,
  unknownReads,
  wrongLogins,
} from './floods/requests.ts'
import { emptyFragments, emptyMessages, websocketPings } from './floods/websocket.ts'
import { prepareHistoryReads } from './history-reads.ts'
import { largeWebsocketMessages } from './large-websocket-messages.ts'
import { manyLivestreams } from './many-livestreams.ts'
import { newLivestreams } from './new-livestreams.ts'
import { offlineSessions } from './offline-sessions.ts'
import { pipelinedGets } from './pipelined-gets.ts'
import { prepareSlowStreams } from './slow-streams.ts'
import { prepareSlowWebhooks } from './slow-webhooks.ts'
import { recordsBeforeLogin, recordsInPublish } from './tiny-records.ts'

/** An attack with its settings. */
export interface Plan {
  attack: Attack | { prepare: (target: Target) => Promise<Attack> }
  /** The default force. */
  force: Omit<Force, 'seconds'>
  /** HUB_ variables of the attacked node. */
  env?: Record<string, string>
  /** Number of livestreams in the feed. */
  livestreams?: number
  /** Largest p99 of the pair beside, milliseconds. Absent: the time budget. */
  p99?: number
  /** Whether the bench also measures pushes to a webhook of another institution. */
  pushes?: boolean
}

/** Attacks that brought a hub down, or slowed it down. By default the scenario measures these. */
const table = {
  'events-in-chunks': { attack: eventsInChunks, force: { connections: 40, addresses: 20 } },
  'login-in-chunks': { attack: loginInChunks, force: { connections: 20, addresses: 20 } },
  'pipelined-gets': { attack: pipelinedGets, force: { connections: 5, addresses: 5 } },
  'records-before-login': { attack: recordsBeforeLogin, force: { connections: 200, addresses: 20 } },
  'records-in-publish': { attack: recordsInPublish, force: { connections: 40, addresses: 20 } },
  'large-websocket-messages': { attack: largeWebsocketMessages, force: { connections: 300, addresses: 20 } },
  'empty-services': { attack: emptyServices, force: { connections: 10, addresses: 10 } },
  'numbers-as-ids': { attack: numbersAsIds, force: { connections: 10, addresses: 10 } },
  'unknown-properties': { attack: unknownProperties, force: { connections: 10, addresses: 10 } },
  'many-livestreams': {
    attack: manyLivestreams,
    force: { connections: 10, addresses: 10 },
    livestreams: 4000,
  },
  'slow-webhooks': {
    attack: { prepare: prepareSlowWebhooks },
    force: { connections: 1, addresses: 1 },
    pushes: true,
  },
  'offline-sessions': {
    attack: offlineSessions,
    force: { connections: 20, addresses: 20 },
    env: { HUB_MAX_SESSIONS_PER_CREDENTIAL: '100' },
  },
  'new-livestreams': { attack: newLivestreams, force: { connections: 10, addresses: 10 }, p99: 150 },
  'openapi-reads': { attack: openapiReads, force: { connections: 20, addresses: 20 }, p99: 150 },
  'metrics-reads': { attack: metricsReads, force: { connections: 20, addresses: 20 }, p99: 150 },
  'livestream-reads': {
    attack: livestreamReads,
    force: { connections: 20, addresses: 20 },
    livestreams: 1000,
    p99: 150,
  },
  'history-reads': {
    attack: { prepare: prepareHistoryReads },
    force: { connections: 20, addresses: 20 },
    p99: 150,
  },
  'slow-streams': {
    attack: { prepare: prepareSlowStreams },
    force: { connections: 10, addresses: 10 },
    env: { HUB_PUBLIC_PAGE: 'true' },
    p99: 220,
  },
  'changing-feed': {
    attack: changingFeed,
    force: { connections: 1, addresses: 1 },
    env: { HUB_FEED_INTERVAL: '1' },
    livestreams: 20_000,
    p99: 150,
  },
} satisfies Record<string, Plan>

/** More attacks, with many small pieces such as packets. With `--floods 1` the scenario measures these too. */
const floods = {
  'ping-flood': { attack: pingFlood, force: { connections: 10, addresses: 10 } },
  'pubrel-flood': { attack: pubrelFlood, force: { connections: 10, addresses: 10 } },
  'puback-flood': { attack: pubackFlood, force: { connections: 10, addresses: 10 } },
  'subscribe-flood': { attack: subscribeFlood, force: { connections: 10, addresses: 10 } },
  'denied-subscribes': { attack: deniedSubscribeFlood, force: { connections: 10, addresses: 10 } },
  'many-filters': { attack: manyFiltersFlood, force: { connections: 10, addresses: 10 } },
  'unsubscribe-flood': { attack: unsubscribeFlood, force: { connections: 10, addresses: 10 } },
  'denied-publishes': { attack: deniedPublishFlood, force: { connections: 10, addresses: 10 } },
  'empty-publishes': { attack: emptyPublishFlood, force: { connections: 10, addresses: 10 } },
  'wrong-passwords': { attack: wrongPasswords, force: { connections: 40, addresses: 20 } },
  handshakes: { attack: handshakes, force: { connections: 40, addresses: 20 } },
  'half-handshakes': { attack: halfHandshakes, force: { connections: 200, addresses: 20 } },
  'large-wills': { attack: largeWills, force: { connections: 10, addresses: 10 } },
  'asyncapi-reads': { attack: asyncapiReads, force: { connections: 20, addresses: 20 } },
  'unknown-reads': { attack: unknownReads, force: { connections: 20, addresses: 20 } },
  'many-headers': { attack: manyHeaders, force: { connections: 20, addresses: 20 } },
  expectations: { attack: expectations, force: { connections: 20, addresses: 20 } },
  'wrong-logins': { attack: wrongLogins, force: { connections: 20, addresses: 20 } },
  'websocket-pings': { attack: websocketPings, force: { connections: 10, addresses: 10 } },
  'empty-messages': { attack: emptyMessages, force: { connections: 10, addresses: 10 } },
  'empty-fragments': { attack: emptyFragments, force: { connections: 10, addresses: 10 } },
} satisfies Record<string, Plan>

/** The attacks by their names in `--only`. */
export const attacks = { ...table, ...floods }
export const isInTable = (name: AttackName): boolean => Object.hasOwn(table, name)

export type AttackName = keyof typeof attacks
