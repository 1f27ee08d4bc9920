import { maxSockets } from '../../delivery/webhook/sockets.ts'
import type { Attack, Force, Target } from './attack.ts'
import {
  type BadSettings,
  badOutputs,
  badTargets,
  badWebhooks,
  type NodeSettings,
  slowFolder,
} from './bad-receivers.ts'
import { changingFeed } from './changing-feed.ts'
import { eventsInChunks, loginInChunks } from './chunked-body.ts'
import { emptyServices, numbersAsIds, unknownProperties } from './expensive-events.ts'
import { livestreamReads, metricsReads, openapiReads } from './flood-requests.ts'
import { prepareHistoryReads } from './history-reads.ts'
import { largeWebsocketMessages } from './large-websocket-messages.ts'
import { manyLivestreams } from './many-livestreams.ts'
import { newLivestreams } from './new-livestreams.ts'
import { offlineSessions } from './offline-sessions.ts'
import { pipelinedGets } from './pipelined-gets.ts'
import type { Answer, TcpManner } from './receivers.ts'
import { prepareSlowStreams } from './slow-streams.ts'
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
  /** The bench also measures pushes to a healthy receiver: a webhook of another institution, a target or an output. */
  pushes?: 'webhook' | 'target' | 'output'
  /** What the configuration file of the node has. */
  settings?: (of: BadSettings) => NodeSettings
  /** Number of ports that `settings` names. */
  ports?: number
  /** Most files and sockets that the node may open beside those it has. Absent: no bound. */
  files?: number
  /** Files that the node cannot rename, in the folder of the run. */
  slowFiles?: (directory: string) => string[]
}

/** Webhooks and plugin targets have so many sockets at most, idle ones included. */
const deliveryFiles = maxSockets + 64
/** Of each output, at most 64 deliveries are under way. The attacked livestreams are six, of twenty outputs at most. */
const outputFiles = 20 * 6 + 64

/** The attacker publishes over one connection. */
const one = { connections: 1, addresses: 1 }

function webhooksThatAre(answers: readonly Answer[]): Plan {
  return { attack: { prepare: badWebhooks(answers) }, force: one, pushes: 'webhook', files: deliveryFiles }
}

function targetsThatAre(answers: readonly Answer[]): Plan {
  return { ...badTargets(answers), force: one, pushes: 'target', files: deliveryFiles }
}

function outputsThatAre(answers: readonly Answer[], manners: readonly TcpManner[]): Plan {
  return { ...badOutputs(answers, manners), force: one, pushes: 'output', files: outputFiles }
}

/** Attacks that brought a hub down, or slowed it down, by their names in `--only`. */
export const attacks = {
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
  'slow-webhooks': webhooksThatAre(['late']),
  'hanging-webhooks': webhooksThatAre(['silent', 'dripping', 'dripping body']),
  'lying-webhooks': webhooksThatAre(['garbage', 'garbage body', 'no HTTP', 'reset', 'redirect']),
  'flooding-webhooks': webhooksThatAre(['endless body', 'endless headers', 'interim answers']),
  'hanging-targets': targetsThatAre(['late', 'silent', 'dripping', 'dripping body']),
  'lying-targets': targetsThatAre(['garbage', 'garbage body', 'no HTTP', 'reset', 'redirect']),
  'flooding-targets': targetsThatAre(['endless body', 'endless headers', 'interim answers']),
  'hanging-outputs': outputsThatAre(['silent', 'dripping', 'dripping body'], ['never reads']),
  'lying-outputs': outputsThatAre(
    ['garbage', 'garbage body', 'no HTTP', 'reset', 'redirect'],
    ['resets at once'],
  ),
  'flooding-outputs': outputsThatAre(['endless body', 'endless headers', 'interim answers'], ['floods']),
  'slow-folder': { ...slowFolder, force: one, pushes: 'output', files: outputFiles },
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

export type AttackName = keyof typeof attacks
