import { createTemporaryCredentials } from '../acl/temporary.ts'
import { inTimeOr } from '../store/deadline.ts'
import { createRunningWork } from '../store/running-work.ts'
import { describeMqtt } from './description/asyncapi.ts'
import { descriptionRoutes } from './description/description-routes.ts'
import { describeApi } from './description/openapi.ts'
import { schemaRoutes } from './description/schema-routes.ts'
import { keptDocument } from './kept.ts'
import { createLegacyNames } from './legacy-names.ts'
import { tracks } from './lifecycle/track.ts'
import { listenHttps } from './listener.ts'
import { type AuthParts, authRoutes } from './routes/auth-routes.ts'
import { contactRoutes } from './routes/contact-routes.ts'
import { deliveryRoutes } from './routes/delivery-routes.ts'
import { eventRoutes } from './routes/event-routes.ts'
import { healthRoutes } from './routes/health-routes.ts'
import { historyRoutes } from './routes/history-routes.ts'
import { institutionRoutes } from './routes/institution-routes.ts'
import { livestreamRoutes } from './routes/livestream-routes.ts'
import { onAirRoutes } from './routes/on-air-routes.ts'
import { operateRoutes } from './routes/operate-routes.ts'
import { pageAnswer, pageRoutes } from './routes/page-routes.ts'
import { pubsubRoutes } from './routes/pubsub-routes.ts'
import type { Route } from './routes/route.ts'
import { securityRoutes } from './routes/security-routes.ts'
import { sessionRoutes } from './routes/session-routes.ts'
import { streamRoutes } from './routes/stream-routes.ts'
import { subscriptionRoutes } from './routes/subscription-routes.ts'
import { topicRoutes } from './routes/topic-routes.ts'
import { createReaders } from './users/readers.ts'

/** Longest wait for mails that are under way when the hub stops, milliseconds. */
const mailMs = 2_000

/** In the order of the API description. */
const groups = [
  authRoutes,
  sessionRoutes,
  livestreamRoutes,
  onAirRoutes,
  streamRoutes,
  pageRoutes,
  eventRoutes,
  historyRoutes,
  topicRoutes,
  subscriptionRoutes,
  deliveryRoutes,
  pubsubRoutes,
  institutionRoutes,
  contactRoutes,
  operateRoutes,
  healthRoutes,
  securityRoutes,
  schemaRoutes,
  descriptionRoutes,
]

type Taker =
  | (typeof groups)[number]
  | typeof listenHttps
  | typeof createReaders
  | typeof createTemporaryCredentials
  | typeof createLegacyNames

/** What all of these functions take. */
type Parts = Taker extends (parts: infer All) => unknown ? All : never

/** Parts that the bridge makes. */
type Made =
  | 'routes'
  | 'readers'
  | 'openapi'
  | 'asyncapi'
  | 'names'
  | 'temporary'
  | 'counted'
  | 'inBackground'
  | 'frontPage'

/**
 * Starts the HTTPS port (design.md §9) with the HTTPS API and MQTT over WebSocket. Resolves when the port accepts
 * connections.
 */
export async function startBridge(parts: Omit<Parts, Made> & { mqttPort: () => number }) {
  const { version, publicUrl, mqttPort, lifecycle, metrics } = parts
  const counted: AuthParts['counted'] = (outcome) => metrics.logins.inc({ outcome })
  const background = createRunningWork()
  const openapi = keptDocument(
    () => [publicUrl(), ...tracks.map((track) => lifecycle.of(track).state)].join(' '),
    () =>
      describeApi(routes, { version, publicUrl: publicUrl(), stateOf: (track) => lifecycle.of(track).state }),
  )
  const asyncapi = keptDocument(
    () => `${publicUrl()} ${mqttPort()}`,
    () => describeMqtt({ version, publicUrl: publicUrl(), mqttPort: mqttPort() }),
  )
  const all = {
    ...parts,
    counted,
    names: createLegacyNames(parts),
    temporary: createTemporaryCredentials(parts),
    inBackground: (work: () => Promise<void>) =>
      background.add(work().catch((err: unknown) => parts.log.error({ err }, 'reset link not made'))),
    frontPage: () => pageAnswer('on-air', parts),
    openapi,
    asyncapi,
  }
  const routes: Route[] = groups.flatMap((routesOf) => routesOf(all))
  const readers = createReaders({ ...parts, counted })
  const listener = await listenHttps({ ...parts, routes, openapi, readers })

  return {
    port: listener.port,
    /**
     * Stops accepting connections. Resolves when the requests and mails under way are done, or their time limits have
     * passed.
     */
    async stop(): Promise<void> {
      parts.onAir.streams.close()
      await listener.stop()
      // A mail server that hangs does not keep the hub from stopping.
      await inTimeOr(background.ended(), mailMs, undefined)
    },
    close: listener.close,
  }
}
