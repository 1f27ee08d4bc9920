import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { Static, TObject } from 'typebox'
import { Type } from '../event/type.ts'
import { formats, isUrl } from './formats.ts'
import { readJson } from './json-file.ts'
import { keySetMaxAge } from './key-set.ts'
import { mask, show } from './mask.ts'
import { nearest } from './nearest.ts'
import { type RedisConfig, redis } from './redis.ts'
import { crossProblems } from './rules.ts'
import { flag, formatted, httpsUrl, oneOf, onlyOne, text, whole } from './shape.ts'

/** Path of the livestream feed that comes with the hub (design.md §6). */
export const sampleFeedPath = fileURLToPath(new URL('./sample-feed.json', import.meta.url))

/** Whether a path leads to the sample feed of this release, or of another installed release. */
export function isSampleFeed(path: string): boolean {
  return path === sampleFeedPath || /[\\/]config[\\/]sample-feed\.json$/.test(path)
}

/** The default settings (design.md §3). All other settings may stay unset: see `Config`. */
const defaults = {
  stage: 'test',
  project: 'hub',
  dataDir: './data',
  host: '127.0.0.1',
  mqttPort: 8883,
  httpsPort: 8443,
  feed: sampleFeedPath,
  feedInterval: 300, // seconds
  pushAllowPrivate: false,
  serviceAccount: 'publisher@hub.example',
  keyLead: 600, // seconds
  dialects: 'all',
  maxConnections: 20_000,
  maxConnectionsPerAddress: 2_000, // 0: no limit
  connectTimeout: 10, // seconds
  maxConnectPacket: 65_536, // bytes
  maxPacket: 475_136, // bytes: the largest payload plus 64 KiB
  maxClientId: 256, // bytes
  maxSubscriptions: 1_000, // per client
  maxTopicLevels: 100,
  incomingWindow: 1_000, // QoS 2 messages per client
  loginFailures: 20, // per address and minute; 0: no limit
  publishRate: 100, // events per second and credential; 0: no limit
  outgoingBuffer: 1_048_576, // bytes per subscriber
  queueLimit: 1_000, // messages per offline session
  history: 100, // events per livestream
  historyBytes: 268_435_456, // bytes of all livestreams together
  workQueueLimit: 10_000, // messages per webhook or plugin target
  sessionExpiry: 604_800, // seconds
  maxSessionsPerCredential: 20_000, // persistent sessions
  workers: 1,
  proxyProtocol: false,
  livestreamMetrics: false,
  logLevel: 'info',
  plugins: [],
  proxyFrom: [],
  trustedProxies: [],
  feedCanaries: [],
} satisfies Layer

/** A target of the plugin queue (design.md §10). Further fields are settings of its driver. */
export type PluginTarget = Static<typeof pluginTarget> & Record<string, unknown>
const pluginTarget = Type.Object(
  {
    type: formatted('name', 'letters, digits, dots, dashes and underscores, at most 64'),
    autoEnable: Type.Optional(flag()),
    url: Type.Optional(httpsUrl()),
    driver: Type.Optional(text()),
  },
  { additionalProperties: true, description: 'an object with type and url' },
)

/** The mail server for password links (design.md §9). */
type SmtpConfig = Static<typeof smtp> & { port: number; secure: boolean }
const smtp = Type.Object(
  {
    host: text(),
    port: Type.Optional(whole(1, 65_535)),
    secure: Type.Optional(flag()),
    user: Type.Optional(text()),
    password: Type.Optional(text()),
    from: text(),
    ca: Type.Optional(text()),
  },
  { additionalProperties: false, description: 'an object with host and from' },
)

/** Addresses of proxies. A file cannot have an empty list: readers could take it for “trust no address”. */
const networks = Type.Array(
  formatted('network', 'an address such as 192.0.2.7, or a network such as 192.0.2.0/24 or 2001:db8::/32'),
  { minItems: 1, description: 'a list of addresses and networks, at least one' },
)

/** Settings of the environment and of the configuration file: `mqttPort` is `HUB_MQTT_PORT`. */
const settings = {
  stage: oneOf(['test', 'prod']),
  project: formatted('name', 'letters, digits, dots, dashes and underscores, at most 64'),
  dataDir: text(),
  host: text(),
  mqttPort: whole(0, 65_535),
  httpsPort: whole(0, 65_535),
  publicUrl: formatted('base-url', 'an https URL without query and fragment'),
  tlsCert: text(),
  tlsKey: text(),
  tlsCa: text(),
  feed: formatted('feed', 'a path, or an https URL without user and password'),
  feedInterval: whole(1, 86_400),
  feedCa: text(),
  redisUrl: formatted('redis-url', 'a URL like redis://host:6379/0 or rediss://host'),
  redisReplicas: whole(0),
  pushAllowPrivate: flag(),
  pushCa: text(),
  serviceAccount: formatted('account', 'an account in the form of an e-mail address'),
  keyLead: whole(keySetMaxAge, 604_800), // a week at most
  dialects: oneOf(['all', 'document']),
  maxConnections: whole(1),
  maxConnectionsPerAddress: whole(0),
  connectTimeout: whole(1, 3_600),
  maxConnectPacket: whole(128, 1_048_576),
  maxPacket: whole(1_024, 268_435_460),
  maxClientId: whole(23, 65_535), // [MQTT-3.1.3-5]
  maxSubscriptions: whole(1),
  maxTopicLevels: whole(4, 100), // topics of the radio tree have four levels
  incomingWindow: whole(1, 65_535),
  loginFailures: whole(0),
  publishRate: whole(0),
  // holds a TLS record (16 KiB) and an event of 48 KiB. With much less, even fast subscribers would be cut off
  outgoingBuffer: whole(65_536),
  queueLimit: whole(1),
  history: whole(0),
  historyBytes: whole(0),
  workQueueLimit: whole(2),
  sessionExpiry: whole(1, 3_153_600_000), // 100 years: with far more, the expiry would be no valid date
  maxSessionsPerCredential: whole(1),
  workers: onlyOne('a node is one process; several nodes on one Redis use several cores'),
  proxyProtocol: flag(),
  livestreamMetrics: flag(),
  publicPage: flag(),
  metricsToken: formatted('bearer', 'a secret of 16 to 512 letters, digits and - . _ ~ + /'),
  logLevel: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
}

/** Settings of the configuration file: all above, and lists and objects. */
const fileSettings = {
  ...settings,
  plugins: Type.Array(pluginTarget, { description: 'a list of plugin targets' }),
  feedCanaries: Type.Array(
    Type.String({
      format: 'livestream',
      description: 'the id of a livestream, urn:org:permanent-livestream:…',
    }),
    { maxItems: 1_000, description: 'a list of ids of livestreams' },
  ),
  smtp,
  redis,
  proxyFrom: networks,
  trustedProxies: networks,
}

/** The settings of one source: the environment or the file. */
type Layer = { [K in keyof typeof fileSettings]?: Static<(typeof fileSettings)[K]> }

type Merged = Layer & Required<Pick<Layer, keyof typeof defaults>>
type Defaulted = Exclude<keyof typeof defaults, 'plugins' | 'feedCanaries' | 'proxyFrom' | 'trustedProxies'>

/** The effective configuration, frozen. Paths are absolute. */
export type Config = Readonly<
  { [K in Defaulted]: NonNullable<Layer[K]> } & {
    /** Unset: `https://localhost:<port>`, once the port is known. */
    publicUrl?: string
    /** Unset: true on stage `test`, with development certificates, on a loopback address. Otherwise false. */
    publicPage: boolean
    /** Unset: `/metrics` is open on stage `test`, and closed on stage `prod`. */
    metricsToken?: string
    /** If this and `tlsKey` are unset, the node uses development certificates. */
    tlsCert?: string
    tlsKey?: string
    tlsCa?: string
    /** If this and `redis` are unset, the hub uses the embedded store. */
    redisUrl?: string
    redis?: Readonly<RedisConfig>
    /** Unset: 1 with Sentinels, otherwise 0. */
    redisReplicas: number
    pushCa?: string
    feedCa?: string
    plugins: readonly PluginTarget[]
    /** The load balancers that may send PROXY headers. Empty: any. */
    proxyFrom: readonly string[]
    /** The proxies whose `Forwarded` and `X-Forwarded-For` count. */
    trustedProxies: readonly string[]
    /** Ids of livestreams that no feed may lose. */
    feedCanaries: readonly string[]
    /** Unset: no mail is sent. */
    smtp?: Readonly<SmtpConfig>
  }
>

/**
 * Reads the configuration (design.md §3). The environment overrides the JSON file of `HUB_CONFIG`, and the file
 * overrides the defaults. `problems`: a line for each.
 */
export function loadConfig(env: NodeJS.ProcessEnv, cwd: string): { config: Config } | { problems: string[] } {
  const file = readFile(env, cwd)
  const environment = readEnvironment(env)
  const merged: Merged = { ...defaults, ...file.layer, ...environment.layer }
  const problems = [...file.problems, ...environment.problems, ...crossProblems(merged)]
  if (problems.length > 0) return { problems }
  return { config: freeze(complete(merged, cwd)) }
}

/** Warnings about settings for trying out the hub, if the stage is `prod`. A sentence each. */
export function trialSettings({ stage, feed, tlsCert }: Config): string[] {
  if (stage !== 'prod') return []
  return [
    ...(feed === sampleFeedPath ? ['HUB_FEED is unset: the livestreams are those of the sample feed'] : []),
    ...(tlsCert === undefined
      ? ['HUB_TLS_CERT is unset: clients must be told to trust a development CA']
      : []),
  ]
}

/** The configuration as operators may see it (`hubctl config`): without passwords and tokens. */
export function maskedConfig(config: Config): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, mask(key, value)]))
}

interface Source {
  layer: Layer
  problems: string[]
}

function readFile(env: NodeJS.ProcessEnv, cwd: string): Source {
  if (!env.HUB_CONFIG) return { layer: {}, problems: [] }
  const path = resolve(cwd, env.HUB_CONFIG)
  let content: Buffer
  try {
    content = readFileSync(path)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const problem = `HUB_CONFIG: ${show('', path)}, expected a readable JSON file (${reason})`
    return { layer: {}, problems: [problem] }
  }
  const parsed = readJson(content)
  if ('problems' in parsed) {
    return { layer: {}, problems: parsed.problems.map((problem) => `HUB_CONFIG: ${path}, ${problem}`) }
  }
  fileLayer ??= layerSchema(fileSettings)
  return check(parsed.value, fileLayer, (place) => `${place} in ${path}`)
}

function readEnvironment(env: NodeJS.ProcessEnv): Source {
  const layer: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(env)) {
    // Some process supervisors can unset a variable only by an empty value.
    if (!name.startsWith('HUB_') || name === 'HUB_CONFIG' || !value) continue
    const key = settingNames.get(name)
    if (key === undefined) layer[name] = value
    else layer[key] = parseVariable(settings[key], value)
  }
  return check(layer, environmentLayer, (key) => (key.startsWith('HUB_') ? key : variableName(key)))
}

/** Converts a variable to the type of its setting, if possible. The schema refuses other texts. */
function parseVariable(schema: object, text: string): unknown {
  const type = 'type' in schema ? schema.type : 'string'
  if (type === 'integer' && /^-?\d+$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

function check(value: unknown, validate: ValidateFunction<Layer>, label: (place: string) => string): Source {
  if (validate(value)) return { layer: value, problems: [] }
  // Remove equal lines. A value of the wrong type breaks the rules `type` and `enum`. Both give the same line.
  const problems = [...new Set((validate.errors ?? []).map((error) => describe(error, label)))]
  // Keeps wrong settings, so that the same run reports the problems between settings.
  return { layer: value as Layer, problems }
}

function describe(error: ErrorObject, label: (place: string) => string): string {
  const { keyword, params, data, parentSchema } = error
  const place = error.instancePath.split('/').slice(1)
  if (keyword === 'additionalProperties') {
    const known = Object.keys(parentSchema?.properties ?? {}).map((key) => label(key).split(' ')[0] ?? key)
    // Leave the value out, because it may be a secret.
    return `${label([...place, params.additionalProperty].join('.'))}: unknown, ${insteadOf(params.additionalProperty, known)}`
  }
  if (keyword === 'required') {
    const expected = parentSchema?.properties?.[params.missingProperty]?.description
    return `${label([...place, params.missingProperty].join('.'))}: missing, expected ${expected}`
  }
  const name = place.findLast((segment) => !/^\d+$/.test(segment)) ?? ''
  return `${label(place.join('.'))}: ${show(name, data)}, expected ${parentSchema?.description}`
}

/** What to write instead of an unknown name. Lists the known names if they are few. */
function insteadOf(name: string, known: readonly string[]): string {
  const inFile = Object.keys(fileSettings).find((key) => variableName(key) === name)
  if (inFile !== undefined && !(inFile in settings))
    return `expected ${inFile} in the file that HUB_CONFIG names`
  if (known.length <= shortList) return `expected one of ${known.join(', ')}`
  const meant = nearest(name, known)
  return meant === undefined ? 'expected a setting that docs/operators.md lists' : `did you mean ${meant}?`
}

const shortList = 10

/** Fills in values that result from other settings, and makes paths absolute. */
function complete(merged: Merged, cwd: string): Config {
  const {
    publicUrl,
    publicPage,
    tlsCert,
    tlsKey,
    tlsCa,
    pushCa,
    feedCa,
    smtp,
    redis,
    redisReplicas,
    ...rest
  } = merged
  return {
    ...rest,
    redisReplicas: redisReplicas ?? (redis?.sentinels === undefined ? 0 : 1),
    publicPage: publicPage ?? (rest.stage === 'test' && tlsCert === undefined && isLoopback(rest.host)),
    dataDir: resolve(cwd, rest.dataDir),
    feed: isUrl(rest.feed) ? rest.feed : resolve(cwd, rest.feed),
    ...(publicUrl !== undefined && { publicUrl: publicUrl.replace(/\/+$/, '') }),
    ...(tlsCert !== undefined && { tlsCert: resolve(cwd, tlsCert) }),
    ...(tlsKey !== undefined && { tlsKey: resolve(cwd, tlsKey) }),
    ...(tlsCa !== undefined && { tlsCa: resolve(cwd, tlsCa) }),
    plugins: rest.plugins.map((target) => ({
      ...target,
      ...(target.driver !== undefined && { driver: resolve(cwd, target.driver) }),
    })),
    ...(pushCa !== undefined && { pushCa: resolve(cwd, pushCa) }),
    ...(feedCa !== undefined && { feedCa: resolve(cwd, feedCa) }),
    ...(redis !== undefined && {
      redis: { ...redis, ...(redis.ca !== undefined && { ca: resolve(cwd, redis.ca) }) },
    }),
    ...(smtp !== undefined && {
      smtp: {
        ...smtp,
        ...(smtp.ca !== undefined && { ca: resolve(cwd, smtp.ca) }),
        secure: smtp.secure ?? false,
        port: smtp.port ?? (smtp.secure ? 465 : 587),
      },
    }),
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze)
  return value
}

const ajv = new Ajv({
  allErrors: true,
  verbose: true,
  ownProperties: true,
  strict: true,
  ...{ code: { optimize: false }, validateSchema: false, meta: false }, // event/shape.ts gives the reasons
  formats,
})
const environmentLayer = layerSchema(settings)
let fileLayer: ReturnType<typeof layerSchema> | undefined // compiled on first use: many nodes have no file

/** The names of all environment variables that the hub reads. */
export const variableNames: readonly string[] = ['HUB_CONFIG', ...Object.keys(settings).map(variableName)]

const settingNames = new Map(
  Object.keys(settings).map((key) => [variableName(key), key as keyof typeof settings]),
)

function variableName(key: string): string {
  return `HUB_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}

function layerSchema(properties: TObject['properties']) {
  return ajv.compile<Layer>({ type: 'object', properties, additionalProperties: false })
}
