import { availableParallelism, hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Static, TSchema } from 'typebox'
import { Type } from '../event/type.ts'
import { isUrl } from './formats.ts'
import { keySetMaxAge } from './key-set.ts'
import { outputList } from './outputs.ts'
import { pluginTarget, resolveDriver } from './plugin-target.ts'
import { type RedisConfig, redis, resolveRedisCa } from './redis.ts'
import { sampleFeedPath } from './sample-feed.ts'
import { completeSmtp, smtp } from './smtp.ts'
import { flag, formatted, oneOf, secret, text, whole, wholeOrAuto } from './value-schemas.ts'

/** The sections of docs/reference/settings.md, in their order. */
export const groups = {
  node: 'The node',
  tls: 'TLS',
  feed: 'The livestream feed',
  store: 'The store',
  connections: 'Connections',
  packets: 'Packets and clients',
  sessions: 'Sessions and history',
  webhooks: 'Webhooks, plugin targets and outputs',
  watching: 'Pages, metrics and the log',
}

/** Each worker is a node, and a Redis has at most 64 nodes. */
const maxWorkers = 64

/** A setting. The variable follows from its name: `mqttPort` is `HUB_MQTT_PORT`. Lists and objects stand in the file only. */
export interface Setting {
  readonly group: keyof typeof groups
  /** An error message quotes its description after "expected". `writeOnly`: the value is a secret, and is masked. */
  readonly schema: TSchema
  /** Unset without it, unless there is `derive`. */
  readonly default?: unknown
  /** The default that follows from other settings. */
  derive?(others: Others): unknown
  /** How the reference page names the default, where that is no value or follows from other settings. Markdown. */
  readonly defaultText?: string
  /** Makes the value in effect of what was set, such as an absolute path. `cwd`: the working directory. */
  complete?(value: never, cwd: string): unknown
  /** The parts of a node get seconds as milliseconds: see `limitsOf`. */
  readonly unit?: 'seconds'
  /** What the setting does: Markdown in one line, links from `docs/`. */
  readonly does: string
  /** A value that is not the default, for tests. Not needed for numbers, switches and choices. */
  readonly example?: unknown
}

/** What defaults depend on. */
interface Others {
  stage?: string
  host?: string
  httpsPort?: number
  tlsCert?: string
  redisUrl?: string
  redis?: RedisConfig
}

/**
 * All settings of a node, a row each (design.md §3). `Config`, the checks of the environment and of the file, `hubctl
 * config` and docs/reference/settings.md follow from it. Rules between settings are in `rules.ts`.
 */
export const settings = {
  stage: {
    group: 'node',
    schema: oneOf(['test', 'prod']),
    default: 'test',
    does: '`test` or `prod`, which warns at start about the sample feed and development certificates',
  },
  project: {
    group: 'node',
    schema: formatted('name', 'letters, digits, dots, dashes and underscores, at most 64'),
    default: 'hub',
    does: 'project in the names of topics and subscriptions of the HTTPS API',
    example: 'radio-1',
  },
  dataDir: {
    group: 'node',
    schema: text(),
    default: './data',
    complete: absolute,
    does: 'store, admin socket, audit log',
    example: '/var/hub',
  },
  host: {
    group: 'node',
    schema: text(),
    default: '127.0.0.1',
    does: 'listen address; `0.0.0.0` or `::` for all',
    example: '::',
  },
  mqttPort: {
    group: 'node',
    schema: whole(0, 65_535),
    default: 8883,
    does: '0: any free port, which the ready line names',
  },
  httpsPort: {
    group: 'node',
    schema: whole(0, 65_535),
    default: 8443,
    does: 'HTTPS API and MQTT over WebSocket (`/mqtt`); 0 as above, otherwise another port than `HUB_MQTT_PORT`',
  },
  publicUrl: {
    group: 'node',
    schema: formatted('base-url', 'an https URL without user, query and fragment'),
    complete: (url: string) => url.replace(/\/+$/, ''),
    does: 'address of the HTTPS port for clients: issuer of tokens, start of links; unset: `https://localhost:<port>`. Below a path only the API works: pages, also those of mailed links, need the root of a host. With another value all log-ins end',
    example: 'https://hub.example',
  },
  nodeUrl: {
    group: 'node',
    schema: formatted('node-url', 'an https URL of a host and a port, such as https://10.0.0.7:8443'),
    derive: nodeUrlOf,
    defaultText: '`HUB_HOST`, or the name of the machine, with `HUB_HTTPS_PORT`',
    does: 'address of the HTTPS port of this node for the other nodes on the same Redis: where Redis is not reachable, they [ask each other](deployment.md#when-a-node-is-cut-off)',
    example: 'https://10.0.0.7:8443',
  },
  workers: {
    group: 'node',
    schema: wholeOrAuto(1, maxWorkers),
    default: 1,
    complete: (workers: number | 'auto') =>
      workers === 'auto' ? Math.min(availableParallelism(), maxWorkers) : workers,
    does: 'processes on the same ports, to use [several cores](deployment.md#several-cores); `auto`: one for each core. Needs a Redis, of which each process is a node',
    example: 2,
  },
  tlsCert: {
    group: 'tls',
    schema: text(),
    complete: absolute,
    does: 'PEM path of the certificate chain, with `HUB_TLS_KEY`; unset: a development certificate',
    example: '/etc/hub/cert.pem',
  },
  tlsKey: {
    group: 'tls',
    schema: text(),
    complete: absolute,
    does: 'PEM path of its key',
    example: '/etc/hub/key.pem',
  },
  tlsCa: {
    group: 'tls',
    schema: text(),
    complete: absolute,
    does: 'PEM path of the CA that users are told to trust, which `hubctl status` names (`certificate.ca`); unset: the development one with a development certificate, otherwise none. For client certificates there is `HUB_CLIENT_CA`',
    example: '/etc/hub/ca.pem',
  },
  clientCa: {
    group: 'tls',
    schema: text(),
    complete: absolute,
    does: 'PEM path of a CA whose [client certificates](operators.md#client-certificates) log clients in over MQTT, beside passwords; a replaced file is read again',
    example: '/etc/hub/client-ca.pem',
  },
  feed: {
    group: 'feed',
    schema: formatted('feed', 'a path, or an https URL without user and password'),
    default: sampleFeedPath,
    defaultText: 'the sample feed',
    complete: (feed: string, cwd: string) => (isUrl(feed) ? feed : absolute(feed, cwd)),
    does: 'path or https URL of the livestream feed',
    example: 'https://feed.example/all?x=1',
  },
  feedInterval: {
    group: 'feed',
    schema: whole(1, 86_400),
    default: 300,
    unit: 'seconds',
    does: 'seconds between refreshes',
  },
  feedCa: {
    group: 'feed',
    schema: text(),
    complete: absolute,
    does: 'PEM path of a CA that is trusted besides the usual ones when reading the feed; a replaced file is read again',
    example: '/etc/hub/feed-ca.pem',
  },
  feedCanaries: {
    group: 'feed',
    schema: Type.Array(
      Type.String({
        format: 'livestream',
        description: 'the id of a livestream, urn:org:permanent-livestream:…',
      }),
      { maxItems: 1_000, description: 'a list of ids of livestreams' },
    ),
    default: [],
    defaultText: 'none',
    does: 'livestreams that [no feed may lose](operators.md#the-livestream-feed)',
    example: ['urn:org:permanent-livestream:4638c4eac849c618'],
  },
  dialects: {
    group: 'feed',
    schema: oneOf(['all', 'document']),
    default: 'all',
    does: 'which forms of an event are read over MQTT: `all`, also [the newer one](publishers.md#the-newer-form); `document`, only that of the service document, and fields of the newer form are unknown fields. The same on all nodes',
  },
  loops: {
    group: 'watching',
    schema: oneOf(['warn', 'off']),
    default: 'warn',
    does: '`warn`: publishers are warned when [two livestreams publish each other in a loop](operators.md#loops). Nothing is blocked. The same on all nodes',
  },
  redisUrl: {
    group: 'store',
    schema: formatted('redis-url', 'a URL like redis://host:6379/0 or rediss://host'),
    does: 'Redis in place of the embedded store, for [several nodes](deployment.md#several-nodes); needs `HUB_PUBLIC_URL`',
    example: 'rediss://redis.example:6379/1',
  },
  redis: {
    group: 'store',
    schema: redis,
    complete: resolveRedisCa,
    does: 'Sentinels, a cluster or a CA, where [`HUB_REDIS_URL` is not enough](operators.md#configuration)',
    example: { ca: '/etc/hub/redis-ca.pem' },
  },
  redisReplicas: {
    group: 'store',
    schema: whole(0),
    // Acknowledges no event that a failover would lose.
    derive: ({ redis }) => (redis?.sentinels === undefined ? 0 : 1),
    defaultText: '`0`, with Sentinels `1`',
    does: 'replicas of Redis that must have an event before the node [acknowledges](deployment.md#several-nodes) it; with fewer it acknowledges nothing. With `0` a failover [loses events](deployment.md#several-nodes). Not for a cluster',
  },
  maxConnections: {
    group: 'connections',
    schema: whole(1),
    default: 20_000,
    does: 'open MQTT connections of all workers, over TCP and WebSocket together; as many again for HTTPS requests. Each process takes only as many as [its open files](deployment.md#sizing) allow',
  },
  maxConnectionsPerAddress: {
    group: 'connections',
    schema: whole(0),
    default: 2_000,
    does: 'the same of one address, an IPv6 /64 network counts as one; 0: no limit',
  },
  maxStreams: {
    group: 'connections',
    schema: whole(0),
    default: 10_000,
    does: 'open [streams](reading.md#as-a-stream) over HTTPS; each also counts as a connection. Beyond that a stream gets `bye`',
  },
  connectTimeout: {
    group: 'connections',
    schema: whole(1, 3_600),
    default: 10,
    unit: 'seconds',
    does: 'seconds in which a CONNECT must have arrived',
  },
  loginFailures: {
    group: 'connections',
    schema: whole(0),
    default: 20,
    does: 'failed log-ins per address and minute, then none for a minute; an IPv6 /64 network counts as one address; over HTTPS also half as many per account from there ([more](operators.md#failed-log-ins)); 0: no limit',
  },
  proxyProtocol: {
    group: 'connections',
    schema: flag(),
    default: false,
    does: 'a load balancer in front sends PROXY protocol headers (v1, v2), so that limits per address see the client. Set it only then: a connection without a [good header](operators.md#addresses-of-clients) is refused. `proxyFrom` in the file says who may send one',
  },
  proxyFrom: {
    group: 'connections',
    schema: networks(),
    default: [],
    defaultText: 'any',
    does: 'the load balancers that may send [PROXY headers](operators.md#addresses-of-clients)',
    example: ['192.0.2.7', '2001:db8::/48'],
  },
  trustedProxies: {
    group: 'connections',
    schema: networks(),
    default: [],
    defaultText: 'none',
    does: 'the HTTP proxies whose `Forwarded` and `X-Forwarded-For` count for [addresses of clients](operators.md#addresses-of-clients)',
    example: ['10.1.0.0/24'],
  },
  maxConnectPacket: {
    group: 'packets',
    schema: whole(128, 1_048_576),
    default: 65_536,
    does: 'bytes of a packet before log-in; nothing larger is ever buffered',
  },
  maxPacket: {
    group: 'packets',
    schema: whole(1_024, 268_435_460),
    default: 475_136, // the largest payload plus 64 KiB
    does: 'bytes of a packet after log-in: the largest payload and 64 KiB; a packet that announces more closes the connection',
  },
  maxClientId: {
    group: 'packets',
    schema: whole(23, 65_535), // [MQTT-3.1.3-5]
    default: 256,
    does: 'bytes of a client id; a longer one is answered with CONNACK 2',
  },
  maxSubscriptions: {
    group: 'packets',
    schema: whole(1),
    default: 1_000,
    does: 'filters of one client; further ones get 0x80. A packet with more filters closes the connection',
  },
  maxTopicLevels: {
    group: 'packets',
    schema: whole(4, 100), // topics of the radio tree have four levels
    default: 100,
    does: "levels of a topic (`topic.invalid` beyond) and of a filter (0x80 beyond); a subscriber's filter has [five at most](subscribers.md#topics-and-filters)",
  },
  incomingWindow: {
    group: 'packets',
    schema: whole(1, 65_535),
    default: 1_000,
    does: 'QoS 2 messages that one client may leave without PUBREL before the node closes its connection',
  },
  publishRate: {
    group: 'packets',
    schema: whole(0),
    default: 100,
    does: 'events per second and credential, twice that in a burst; [large ones and those for many livestreams count several times](publishers.md#limits); above it the node reads more slowly, nothing is lost; over HTTPS per user, above it 429; 0: no limit',
  },
  outgoingBuffer: {
    group: 'packets',
    // Holds a TLS record (16 KiB) and an event of 48 KiB. With much less, even fast subscribers would be cut off.
    schema: whole(65_536),
    default: 1_048_576,
    does: 'bytes that may wait for one subscriber before it is cut off',
  },
  queueLimit: {
    group: 'sessions',
    schema: whole(1),
    default: 1_000,
    does: 'messages that one session gets when it [comes back](subscribers.md#when-you-come-back); the oldest are dropped and counted. Values above 1,000 bring a session no more',
  },
  history: {
    group: 'sessions',
    schema: whole(0),
    default: 100,
    does: 'newest events of each livestream that the node keeps [for the history](operators.md#what-the-journal-keeps). The newest 64 MiB of all messages are there as well, also with `0`',
  },
  historyBytes: {
    group: 'sessions',
    schema: whole(0),
    default: 268_435_456,
    does: 'bytes of these events as stored, of all livestreams together; livestreams with the most [are shortened first](operators.md#what-the-journal-keeps)',
  },
  sessionExpiry: {
    group: 'sessions',
    schema: whole(1, 3_153_600_000), // 100 years: with far more, the expiry would be no valid date
    default: 604_800,
    unit: 'seconds',
    does: 'seconds that an offline session is kept, at most 100 years; they pass only while the hub runs',
  },
  maxSessionsPerCredential: {
    group: 'sessions',
    schema: whole(1),
    default: 20_000,
    does: 'persistent sessions (`clean` false) of one credential, connected or not; one more is answered with CONNACK 3',
  },
  pushAllowPrivate: {
    group: 'webhooks',
    schema: flag(),
    default: false,
    does: 'allow webhooks on private addresses, loopback and `localhost`, and on any port; refused on stage `prod`',
  },
  pushCa: {
    group: 'webhooks',
    schema: text(),
    complete: absolute,
    does: 'PEM path of a CA that is trusted besides the usual ones when pushing to webhooks and plugin targets; a replaced file is read again',
    example: '/etc/hub/push-ca.pem',
  },
  serviceAccount: {
    group: 'webhooks',
    schema: formatted('account', 'an account in the form of an e-mail address'),
    default: 'publisher@hub.example',
    does: '`serviceAccount` of subscriptions made from now on, and `email` in the tokens of their pushes',
    example: 'a@b.example',
  },
  keyLead: {
    group: 'webhooks',
    schema: whole(keySetMaxAge, 604_800), // a week at most
    default: 600,
    unit: 'seconds',
    does: 'seconds from the publication of a new [signing key](operators.md#signing-keys) to the first token signed with it, at least the `max-age` of the key set. The same on all nodes',
  },
  workQueueLimit: {
    group: 'webhooks',
    schema: whole(2),
    default: 10_000,
    does: 'items that wait for one webhook or plugin target; the oldest are dropped and counted',
  },
  plugins: {
    group: 'webhooks',
    schema: Type.Array(pluginTarget, { description: 'a list of plugin targets' }),
    default: [],
    defaultText: 'none',
    complete: (targets: Static<typeof pluginTarget>[], cwd: string) =>
      targets.map((target) => resolveDriver(target, cwd)),
    does: 'the [plugin targets](plugins.md#configuration)',
    example: [{ type: 'dts', autoEnable: true, url: 'https://dts.example/in', region: { a: 1 } }],
  },
  outputs: {
    group: 'webhooks',
    schema: outputList,
    default: [],
    defaultText: 'none',
    does: 'the [outputs](outputs.md#configuration)',
    example: [
      {
        name: 'web',
        driver: 'icecast',
        url: 'http://10.0.0.7:8000',
        username: 'admin',
        password: 'secret',
        livestreams: { 'urn:org:livestream:0123456789abcdef': '/live.mp3' },
      },
    ],
  },
  smtp: {
    group: 'webhooks',
    schema: smtp,
    complete: completeSmtp,
    does: 'the [mail server](operators.md#configuration) for password links and for mails to the contact of a disabled webhook; unset: no mail is sent',
    example: { host: 'mail.example', port: 25, secure: false, from: 'Hub <hub@example.org>' },
  },
  publicPage: {
    group: 'watching',
    schema: flag(),
    derive: ({ stage, tlsCert, host }) => stage === 'test' && tlsCert === undefined && isLoopback(host),
    defaultText: '`true` where a node is tried out',
    does: 'strangers may look at the [on-air page](operators.md#the-on-air-page), with credentials that only read and end after an hour. Unset, it is `true` only where a node is tried out: on stage `test`, with development certificates, while `HUB_HOST` is a loopback address; the start says so. Everywhere else it is `false`',
  },
  securityContact: {
    group: 'watching',
    schema: formatted('contact', 'mailto: with an address, or an https URL'),
    does: 'address for reports of a security hole in your hub: `/.well-known/security.txt` names it (RFC 9116). Unset, there is no such file',
    example: 'mailto:security@hub.example',
  },
  metricsToken: {
    group: 'watching',
    schema: secret(formatted('bearer', 'a secret of 16 to 512 letters, digits and - . _ ~ + /')),
    does: 'the bearer token with which Prometheus reads [`/metrics`](operators.md#health). Unset, `/metrics` is open on stage `test`, and closed on stage `prod`',
    example: '0123456789abcdef',
  },
  livestreamMetrics: {
    group: 'watching',
    schema: flag(),
    default: false,
    does: 'show [`hub_livestream_subscribers`](operators.md#metrics) in `/metrics`: one value for each livestream of the feed',
  },
  logLevel: {
    group: 'watching',
    schema: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    default: 'info',
    does: 'the least level of the lines in the [log](operators.md#log)',
  },
} satisfies Record<string, Setting>

type SettingName = keyof typeof settings

/** The settings of one source, the environment or the file, as they were set. */
export type Layer = { [Name in SettingName]?: Static<(typeof settings)[Name]['schema']> }

/** The value of a setting that is in effect. */
type Value<Of extends Setting> = Of extends { complete: (value: never, cwd: string) => infer Completed }
  ? Completed
  : Static<Of['schema']>

type NamesWith<Part> = {
  [Name in SettingName]: (typeof settings)[Name] extends Part ? Name : never
}[SettingName]

/** Settings that have a value, set or not. */
type Always = NamesWith<{ default: unknown } | { derive: unknown }>

/** The effective configuration, frozen. Paths are absolute. */
export type Config = { readonly [Name in Always]: Frozen<Value<(typeof settings)[Name]>> } & {
  readonly [Name in Exclude<SettingName, Always>]?: Frozen<Value<(typeof settings)[Name]>>
}

type Frozen<T> = T extends readonly (infer Item)[] ? readonly Item[] : T extends object ? Readonly<T> : T

type Numbers = { [Name in keyof Config as Config[Name] extends number ? Name : never]: number }
type Seconds = NamesWith<{ unit: 'seconds' }>

/** The whole numbers of the configuration, as the parts of a node take them. */
export type Limits = Omit<Numbers, Seconds> & { [Name in Seconds as `${Name}Ms`]: number }

/** The name of the environment variable of a setting: `mqttPort` gives `HUB_MQTT_PORT`. */
export function variableName(name: string): string {
  return `HUB_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}

/** Whether a setting stands in the file only. */
export function isFileOnly({ schema }: Setting): boolean {
  return 'type' in schema && (schema.type === 'array' || schema.type === 'object')
}

/** Addresses of proxies. A file cannot have an empty list: readers could take it for “trust no address”. */
function networks() {
  return Type.Array(
    formatted('network', 'an address such as 192.0.2.7, or a network such as 192.0.2.0/24 or 2001:db8::/32'),
    { minItems: 1, description: 'a list of addresses and networks, at least one' },
  )
}

function absolute(path: string, cwd: string): string {
  return resolve(cwd, path)
}

/** Undefined for a node alone, and for a port that the system chooses. */
function nodeUrlOf({ host = '', httpsPort, redisUrl, redis }: Others): string | undefined {
  if (!httpsPort || (redisUrl === undefined && redis === undefined)) return undefined
  const name = host === '0.0.0.0' || host === '::' ? hostname() : host
  return new URL(`https://${name.includes(':') ? `[${name}]` : name}:${httpsPort}`).origin
}

function isLoopback(host = ''): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
