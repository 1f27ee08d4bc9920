import type { PageLogin } from '../acl/credential.ts'
import type { Credentials } from '../acl/credentials.ts'
import { createTemporaryCredentials } from '../acl/temporary.ts'
import type { SigningKeys } from '../certs/signing-keys.ts'
import type { LoginLimit } from '../listener/login-limit.ts'
import { inTimeOr } from '../store/deadline.ts'
import { createRunningWork } from '../store/running-work.ts'
import type { Store } from '../store/store.ts'
import type { Feed } from '../validator/feed/feed.ts'
import type { Pipeline } from '../validator/pipeline.ts'
import type { Topics } from '../validator/topics.ts'
import { describeMqtt } from './description/asyncapi.ts'
import { descriptionRoutes } from './description/description-routes.ts'
import { describeApi } from './description/openapi.ts'
import { schemaRoutes } from './description/schema-routes.ts'
import { keptDocument } from './kept.ts'
import { createLegacyNames } from './legacy-names.ts'
import type { Lifecycle } from './lifecycle/lifecycle.ts'
import { tracks } from './lifecycle/track.ts'
import { listenHttps } from './listener.ts'
import { type AuthParts, authRoutes } from './routes/auth-routes.ts'
import { type ContactParts, contactRoutes } from './routes/contact-routes.ts'
import { type DeliveryParts, deliveryRoutes } from './routes/delivery-routes.ts'
import { type EventRate, eventRoutes } from './routes/event-routes.ts'
import { type HealthCheck, healthRoutes, type ReadinessCheck } from './routes/health-routes.ts'
import { type HistoryParts, historyRoutes } from './routes/history-routes.ts'
import { type InstitutionParts, institutionRoutes } from './routes/institution-routes.ts'
import { livestreamRoutes } from './routes/livestream-routes.ts'
import { type OnAirParts, onAirRoutes } from './routes/on-air-routes.ts'
import { type OperateParts, operateRoutes } from './routes/operate-routes.ts'
import { pageAnswer, pageRoutes, type WebFiles } from './routes/page-routes.ts'
import { type PubsubParts, pubsubRoutes } from './routes/pubsub-routes.ts'
import type { Route } from './routes/route.ts'
import { securityRoutes } from './routes/security-routes.ts'
import { sessionRoutes } from './routes/session-routes.ts'
import { type StreamParts, streamRoutes } from './routes/stream-routes.ts'
import { type AuditOfChanges, subscriptionRoutes } from './routes/subscription-routes.ts'
import { topicRoutes } from './routes/topic-routes.ts'
import type { FirstOperator } from './users/first-operator.ts'
import type { UserLogIn } from './users/log-in.ts'
import { createReaders } from './users/readers.ts'
import type { ResetMail } from './users/reset-mail.ts'
import type { Tokens } from './users/tokens.ts'
import type { Users } from './users/users.ts'

/** Longest wait for mails that are under way when the hub stops, milliseconds. */
const mailMs = 2_000

type ListenerParts = Omit<Parameters<typeof listenHttps>[0], 'routes' | 'openapi' | 'readers'>

/**
 * Starts the HTTPS port (design.md §9) with the HTTPS API and MQTT over WebSocket. Resolves when the port accepts
 * connections.
 */
export async function startBridge(
  parts: ListenerParts &
    Pick<PubsubParts, 'subscriptions' | 'deliveries'> &
    DeliveryParts &
    HistoryParts &
    OnAirParts &
    StreamParts &
    OperateParts &
    InstitutionParts &
    Pick<ContactParts, 'contacts'> & {
      stage: string
      project: string
      version: string
      store: Store
      clock: () => number
      credentials: Credentials
      /** Failed log-ins with credentials, over MQTT and here. */
      loginLimit: LoginLimit
      /** Notes that a reader has asked. */
      noteUse: (username: string) => void
      /** Whether the log-in of a page is still valid. */
      isCurrent: (login: PageLogin) => boolean
      webFiles: WebFiles
      /** Visitors may look at the on-air page without a log-in (`HUB_PUBLIC_PAGE`). */
      isPagePublic: boolean
      /** The bearer token for `/metrics` (`HUB_METRICS_TOKEN`). */
      metricsToken: string | undefined
      firstOperator: FirstOperator | undefined
      publicUrl: () => string
      mqttPort: () => number
      pipeline: Pick<Pipeline, 'publishLegacy'>
      topics: Topics
      feed: () => Feed | undefined
      silent: Parameters<typeof livestreamRoutes>[0]['silent']
      users: Users
      logIn: UserLogIn
      tokens: Tokens
      keys: SigningKeys
      resetMail: ResetMail | undefined
      subscriptions: Parameters<typeof subscriptionRoutes>[0]['subscriptions']
      lifecycle: Lifecycle
      checkUrl: (url: string) => Promise<string | undefined>
      audit: AuditOfChanges & ContactParts['audit']
      health: HealthCheck
      readiness: ReadinessCheck
      /** `HUB_SECURITY_CONTACT`. */
      securityContact: string | undefined
      rate: EventRate
    },
) {
  const { version, publicUrl, mqttPort, lifecycle, metrics } = parts
  const names = createLegacyNames(parts)
  const temporary = createTemporaryCredentials(parts)
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
  const routes: Route[] = [
    ...authRoutes({
      ...parts,
      counted,
      inBackground: (work) =>
        background.add(work().catch((err: unknown) => parts.log.error({ err }, 'reset link not made'))),
    }),
    ...sessionRoutes({ ...parts, counted, temporary }),
    ...livestreamRoutes(parts),
    ...onAirRoutes(parts),
    ...streamRoutes(parts),
    ...pageRoutes(parts),
    ...eventRoutes({ ...parts, names }),
    ...historyRoutes(parts),
    ...topicRoutes({ ...parts, names }),
    ...subscriptionRoutes({ ...parts, names }),
    ...deliveryRoutes(parts),
    ...pubsubRoutes(parts),
    ...institutionRoutes(parts),
    ...contactRoutes(parts),
    ...operateRoutes(parts),
    ...healthRoutes({ ...parts, frontPage: () => pageAnswer('on-air', parts) }),
    ...securityRoutes(parts),
    ...schemaRoutes(parts),
    ...descriptionRoutes({ ...parts, openapi, asyncapi }),
  ]
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
