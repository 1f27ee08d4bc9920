import type { Broker } from '../broker/broker.ts'
import { maskedConfig } from '../config/config.ts'
import type { Config } from '../config/settings.ts'
import type { Deliveries } from '../delivery/deliveries.ts'
import type { Commands } from '../operations/perform.ts'
import type { Log } from '../telemetry/log.ts'
import type { Trend } from '../telemetry/trend.ts'
import type { Pipeline } from '../validator/pipeline.ts'
import { type CommandParts, createCommands } from './commands.ts'
import { createKnownEvents } from './known-events.ts'
import { createStatus } from './status.ts'

/** The commands of a node, from its parts. */
export function createNodeCommands(
  parts: Pick<
    CommandParts,
    'credentials' | 'lastUsed' | 'audit' | 'users' | 'keys' | 'lifecycle' | 'store' | 'catchUp' | 'resetUrl'
  > &
    Parameters<typeof createKnownEvents>[0] &
    Parameters<typeof createStatus>[0] & {
      config: Config
      /** The configuration with the node's own choices: ports, URL and development certificate. */
      inEffect: () => Config
      broker: Broker
      deliveries: Deliveries
      trend: Trend
      pipeline: Pick<Pipeline, 'check' | 'decide' | 'settle'>
      clock: () => number
      log: Log
    },
): Commands {
  const { config, inEffect, broker, deliveries, pipeline, node, trend, credentials, feed, clock, log } = parts
  return createCommands({
    ...parts,
    ...brokerParts(broker),
    status: createStatus(parts),
    trend: () => ({ node, everySeconds: trend.everySeconds, samples: trend.samples() }),
    config: () => maskedConfig(inEffect()),
    check: ({ payload, institution, cls }) =>
      pipeline.check({ payload, institutionId: institution, topicClass: cls, allowedClasses: [] }),
    queues: deliveries,
    subscriptions: deliveries.subscriptions,
    testWebhook: deliveries.test,
    events: createKnownEvents(parts),
    aedesImport: {
      ...{ pipeline, log, credential: credentials.get, maxFilters: config.maxSubscriptions },
      ...{ feed: feed.current, retained: broker.retained, sessions: broker.importedSessions, now: clock },
    },
  })
}

/** The parts of the broker that commands ask and change. */
function brokerParts(broker: Broker): Pick<CommandParts, 'clients' | 'sessions' | 'retained'> {
  return {
    clients: {
      list: broker.clients,
      count: broker.subscribers,
      exists: broker.isConnected,
      disconnect: broker.disconnect,
    },
    sessions: {
      list: broker.sessionList,
      exists: broker.hasSession,
      drop: broker.dropSession,
      persistentOf: (username) => broker.known.persistentOf(username).size,
      show: broker.session,
    },
    retained: {
      list: broker.retainedList,
      exists: (topic) => broker.retained.current(topic) !== undefined,
      clear: broker.retained.clear,
    },
  }
}
