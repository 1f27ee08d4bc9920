/** The node's answers to the commands of the console, as far as the console shows them. */
export interface Results {
  status: Status
  trend: Trend
  'events.newest': NewestEvent[]
  'events.slow': SlowEvent[]
  'events.tail': { events: EventRow[]; next: number; leftOut: number | null }
  'events.list': { events: EventRow[]; next: number | null }
  'events.show': ShownEvent
  check: Checked
  'feed.lookup': Livestream[]
  'retained.list': {
    topic: string
    eventTime: string
    expires: string | null
    bytes: number
    payload: string
  }[]
  'retained.clear': { topic: string }
  'queues.list': Queue[]
  'queues.attempts': Attempt[]
  'queues.dead-letters': DeadLetter[]
  'queues.replay': { name: string; replayed: number }
  'subscriptions.list': Subscription[]
  'subscriptions.show': ShownSubscription
  'subscriptions.test': { name: string; delivered: boolean; delivery: Attempt }
  'subscriptions.pause': { name: string }
  'subscriptions.resume': { name: string; state: string; pending: number }
  'subscriptions.remove': { name: string; pending: number; deadLetters: number }
  'credentials.list': Credential[]
  'credentials.show': Credential
  'credentials.add': IssuedCredential
  'credentials.rotate': IssuedCredential & { replaces: string; revokeAt: string | null }
  'credentials.revoke': { username: string }
  'users.list': User[]
  'users.add': ResetLink
  'users.remove': { email: string }
  'users.reset-password': ResetLink
  'clients.list': Client[]
  'clients.count': { livestreamId: string; title: string | null; subscribers: number; ofAll: number }[]
  'clients.disconnect': { clientId: string }
  'sessions.list': Session[]
  'sessions.show': Session
  'sessions.drop': { clientId: string }
  'feed.status': FeedStatus
  'feed.refresh': FeedStatus & { itemsBefore: number }
  'feed.diff': FeedDiff
  'lifecycle.status': Track[]
  'lifecycle.announce': Track
  'lifecycle.brownout': Track
  'lifecycle.retire': Track
  audit: { at: string; who: string; action: string; target: string; detail: unknown; node?: string }[]
  config: Record<string, unknown>
  'import.aedes-redis': ImportReport
  'keys.list': SigningKey[]
  'keys.rotate': {
    kid: string
    signsFrom: string
    dropOld: boolean
    mayRefuse: { name: string; target: string | null }[]
  }
  'store.accept': { accepted: boolean; at: string; movedTo: string }
}

export interface SigningKey {
  kid: string
  createdAt: string
  signsFrom: string
  replacedAt: string | null
  state: 'waiting' | 'signing' | 'replaced'
}

export type ImportReport = { dryRun: boolean } & Record<
  'retained' | 'sessions' | 'filters' | 'queued',
  {
    found: number
    cameOver: number
    leftOut: { reason: string; count: number; examples: { of: string; why: string }[] }[]
  }
>

export interface Status {
  node: string
  version: string
  stage: string
  uptime: number
  store: {
    driver: string
    ok: boolean
    problem: string | null
    /** An empty store has replaced a damaged one, and no operator has accepted that. */
    isReplaced: boolean
  }
  feed: FeedStatus
  connections: number
  budget: { count: number; p50: number; p99: number }
  certificate: { notAfter: string; expiryDays: number; ca: string | null }
  memory: { rss: number }
  counters: Record<string, number>
}

export interface Trend {
  node: string
  everySeconds: number
  samples: TrendSample[]
}

export interface TrendSample {
  at: string
  seconds: number
  events: Record<string, number>
  deliveries: number
  connections: number
  p50: number | null
  p99: number | null
  exceeded: number
}

export interface FeedStatus {
  source: string
  loadedFrom: string | null
  items: number
  loadedAt: string | null
  ok: boolean
  checkedAt: string | null
  problem: string | null
}

/** What would change if the feed were read now. */
export interface FeedDiff {
  items: number | null
  problem: string | null
  differences:
    | (Record<'added' | 'removed' | 'owners' | 'renamed', FeedPart> & { retitled: { count: number } })
    | null
}

export interface FeedPart {
  count: number
  items: { id: string; title: string }[]
}

export interface EventError {
  path: string
  message: string
  errorCode: string
}

export interface EventRow {
  position: number
  at: string
  outcome: string | null
  dryRun?: true | undefined
  isRepetition?: true | undefined
  id: string | null
  event: string | null
  institutionId: string | null
  services: string[]
  refusedServices?: string[] | undefined
  playlistItemId: string | null
  name: string | null
  eventTime: string | null
  title: string | null
  artist: string | null
  errors: EventError[]
}

export interface Stages {
  decided: number
  stored: number
  written: number
}

export interface SlowEvent extends Stages {
  id: string
  event: string
  at: string
  node: string
}

export interface ShownEvent extends EventRow {
  published: Record<string, unknown> | null
  report: Record<string, unknown> | null
  refused: { bytes: number; isWhole: boolean; text?: string; base64?: string } | null
  topics: {
    topic: string
    position: number
    retained: boolean
    validUntil: string | null
    newer: { id: string | null; title: string | null; eventTime: string | null } | null
  }[]
  nodes: { node: string; recipients: number | null }[]
  stages: (Stages & { node: string }) | null
  deliveries: {
    queue: string
    target: string | null
    contact: string | null
    state: string
    held: 'paused' | 'disabled' | null
    behind: string | null
    attempts: Attempt[]
  }[]
}

export interface Checked {
  outcome: string
  errors?: EventError[]
}

export interface Livestream {
  id: string
  type: string
  externalId: string
  title: string
  publisher: { id: string; externalId: string; title: string }
  institution: { id: string; title: string; acronym: string }
}

export interface NewestEvent {
  at: string | null
  eventTime: string | null
  livestream: { id: string; externalId: string | null; title: string | null; isListed: boolean }
  institution: { id: string | null; title: string | null }
}

export interface Queue {
  name: string
  target: string | null
  contact: string | null
  state: string
  pending: number
  aside: number
  oldest: string | null
  deadLetters: number
  dropped: number
  failures: number
  nextTry: string | null
  lastReason: string | null
  /** Null: the driver is a part of the hub. */
  driver: { state: string; ends: number; lastEnd: { at: string; reason: string } | null } | null
  disabledAt: string | null
  pausedAt: string | null
}

export interface Attempt {
  messageId: string
  time: string
  status: number | null
  duration: number
  reason: string | null
}

export interface DeadLetter {
  messageId: string
  givenUpAt: string
  tries: number
  reason: string | null
}

export interface Subscription {
  name: string
  institutionId: string
  livestream: { id: string; title: string | null }
  url: string
  contact: string | null
  state: string
  pending: number
  oldest: string | null
  deadLetters: number
  createdAt: string
}

export interface ShownSubscription extends Subscription {
  from: string | null
  createdBy: string
  aside: number
  dropped: number
  failures: number
  nextTry: string | null
  lastReason: string | null
  since: string
  paused: { at: string; by: string } | null
  disabled: { at: string; by: string; reason: string } | null
  attempts: Attempt[]
}

export interface Credential {
  username: string
  role: string
  label: string
  institutions: string[]
  filters: string[]
  classes: string[]
  createdAt: string
  revokeAt?: string
  user?: string
  sessions: number
  /** Null: never, or not within the last 400 days. */
  lastUsedAt: string | null
}

export interface IssuedCredential {
  username: string
  password: string
  role: string
  warning?: string
}

export interface User {
  userId: string
  email: string
  institutionId: string
  permissions: string[]
  emailVerified: boolean
  createdAt: string
  hasPassword: boolean
}

export interface ResetLink {
  email: string
  resetUrl: string
  expiresAt: string
  warning?: string
}

export interface Client {
  clientId: string
  node: string
  username: string
  address: string
  connectedAt: string
  clean: boolean
  keepAlive: number
  subscriptions: string[]
  inFlight: number
  pendingBytes: number
}

export interface Session {
  clientId: string
  username: string
  persistent: boolean
  connected: boolean
  node: string | null
  createdAt: string
  disconnectedAt: string | null
  expiresAt: string | null
  subscriptions: string[]
  queued: number | null
  inFlight: number | null
  dropped: number
}

export interface Track {
  track: string
  state: string
  announcedAt: string | null
  sunset: string | null
  link: string | null
  retiredAt: string | null
  requests: number
  /** Until this time the routes of the API track answer 503. */
  brownoutUntil: string | null
  traffic: { day: string; route: string; requests: number }[]
  /** The last request of each user of the track, the newest first. */
  left: { institutionId: string; email: string; userId: string; lastAt: string; route: string }[]
}
