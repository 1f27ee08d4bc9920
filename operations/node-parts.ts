import type { Credentials } from '../acl/credentials.ts'
import type { ImportReport } from '../admin/aedes-redis/report.ts'
import type { Audit } from '../admin/audit.ts'
import type { createStatus } from '../admin/status.ts'
import type { Lifecycle } from '../bridge-https/lifecycle/lifecycle.ts'
import type { InstitutionContacts } from '../bridge-https/users/institution-contacts.ts'
import type { InstitutionMail } from '../bridge-https/users/institution-mail.ts'
import type { Users } from '../bridge-https/users/users.ts'
import type { Broker } from '../broker/broker.ts'
import type { SigningKeys } from '../certs/signing-keys.ts'
import type { Deliveries } from '../delivery/deliveries.ts'
import type { Bans } from '../listener/bans.ts'
import type { StoreState } from '../store/open.ts'
import type { Trend } from '../telemetry/trend.ts'
import type { FeedSource } from '../validator/feed/feed-source.ts'
import type { Pipeline } from '../validator/pipeline.ts'
import type { Topics } from '../validator/topics.ts'
import type { Watch } from '../watch/watch.ts'
import type { Lines } from './lines.ts'
import type { createTail } from './lookups/event-tail.ts'
import type { createEventTrace } from './lookups/event-trace.ts'

/** The parts of a node that commands ask and change. */
export interface NodeParts {
  audit: Audit
  bans: Bans
  broker: Broker
  contacts: InstitutionContacts
  credentials: Credentials
  deliveries: Deliveries
  feed: FeedSource
  /** Undefined: there is no mail server. */
  institutionMail: InstitutionMail
  keys: SigningKeys
  lifecycle: Lifecycle
  /** What operators call the hub, which may have several processes. */
  hub: { node: string }
  /** What a livestream shows now, as `GET /livestreams/{id}/now` tells it. Undefined: there is no such livestream. */
  nowOf(livestreamId: string): Promise<Record<string, unknown> | undefined>
  pipeline: Pick<Pipeline, 'check'>
  storeState: StoreState
  topics: Topics
  /** The samples of the last hour, oldest first. */
  trend(): Promise<ReturnType<Trend['samples']>>
  users: Users
  watch: Pick<Watch, 'loopOf' | 'weekOf'>
  /** Resolves when this node has seen all earlier changes of other nodes. Rejects if the store does not answer. */
  catchUp(): Promise<void>
  /** The configuration with the node's own choices, secrets masked. */
  config(): Record<string, unknown>
  /** Imports the data of an Aedes broker. Answers with the report, or with lines of progress and then the report. */
  importFromAedes(
    asked: { url: string; users?: string[]; dryRun?: boolean; progress?: boolean },
    who: string,
  ): Promise<(ImportReport & { source: string; dryRun: boolean }) | Lines>
  /** When a client last logged in with the credential, ISO 8601. */
  lastUsed(username: string): string | undefined
  /** URL of the page on which a person chooses a password with this token. */
  resetUrl(token: string): string
  /** Since when a livestream has been silent for longer than it usually is, ISO 8601. */
  silentSince?(livestreamId: string): string | undefined
  status: ReturnType<typeof createStatus>
  tail: ReturnType<typeof createTail>
  eventTrace: ReturnType<typeof createEventTrace>
}
