import { createPrivateKey, createPublicKey } from 'node:crypto'
import {
  anything,
  eitherOf,
  type Form,
  fields,
  flag,
  instant,
  integer,
  list,
  moment,
  number,
  object,
  oneOf,
  orNull,
  text,
  tuple,
  webUrl,
} from './record-form.ts'
import { headed, json, jwk, matching, position, positioned, type ValueForm } from './value-form.ts'

/** The records whose keys begin alike. */
export interface Family {
  /** What the keys begin with: up to the first slash, or the whole key if it has none. */
  prefix: string
  /** The keys, with names in braces. `{position}` and `{sequence}` are 16 digits. */
  path: string
  /** What the records are: for those who look into a store. */
  holds: string
  /** The folder or file whose code writes them. */
  owner: string
  /** What follows the prefix. */
  key: KeyForm
  /** Says what the value must be, if it is not. */
  value: ValueForm
  /** Where the store has put the position of a message (`Numbered`), if it has. */
  numbered: 'key' | 'value' | undefined
  /** Positions up to which somebody has got: nobody looks there for a message again. */
  passed: (value: Buffer) => readonly number[]
  /** A start reads all of them. */
  isReadAtStart: boolean
  /** There may be millions: opening the embedded store does not look for damage in them. */
  isLarge: boolean
  /** Only nodes that use the store now need them: no export has them. */
  isOfNodes: boolean
  /** An import leaves those that the store has. */
  isKeptByImport: boolean
  /** Their name, if only a hub that was used has them: no import goes into a store with some. */
  content: string | undefined
}

/** What follows the prefix in a key. */
interface KeyForm {
  form: RegExp
  /** The form in words. */
  expected: string
  /** The key has names that are written as `encodeURIComponent` writes them. */
  isEncoded?: true
}

const anyKey: KeyForm = { form: /^/, expected: 'anything' }

const place = {
  required: { upTo: number, owed: list(tuple(number, oneOf(0, 1, 2), number)) },
  optional: { lost: number, replay: number },
}
const excerpt = object(
  { bytes: number, kept: integer(0), title: orNull(text), artist: orNull(text) },
  { refusedServices: list(text) },
)
const queueRule = object({ keep: oneOf('latest', 'every') }, { time: moment, expires: number })
const principal: Form = (value) => {
  const role = object({ role: oneOf('publisher', 'subscriber'), username: text })(value)
  if (role !== undefined) return role
  return object({ role: oneOf('publisher') })(value) === undefined
    ? object({ institutions: list(text), classes: list(text) })(value)
    : object({ filters: list(text) }, { temporaryOf: text })(value)
}
const attempt = object(
  {
    messageId: text,
    time: instant,
    status: orNull(number),
    duration: number,
    reason: orNull(text),
  },
  { stale: object({ livestreamId: orNull(text), count: integer(1), first: instant, last: instant }) },
)
const item = {
  sequence: integer(0),
  messageId: text,
  details: object({}),
  enqueuedAt: moment,
  tries: number,
  refusals: number,
  attempts: list(attempt),
}
const { sequence, messageId, details, enqueuedAt } = item
const sharedItem = { sequence, messageId, details, enqueuedAt, set: text }
const outgoing = headed(object({ topic: text, queue: queueRule, retain: flag, session: number }))
const maxAge = eitherOf(integer(1), oneOf('element'))
const element = object(
  { event: text, time: number, livestreams: object({}) },
  { item: text, until: number, forMs: number },
)
const timesOfItem = { acceptedAt: moment, asideUntil: moment, begun: moment, element }
const indexed = json(
  object(
    { qos: oneOf(0, 1, 2), bytes: number, at: moment },
    {
      topic: text,
      // A data event may be repeated each million years (`cycle`).
      expires: number,
      sharedUpTo: integer(1),
      isReport: flag,
      hasErrors: flag,
    },
  ),
)

/**
 * All records of the store, one row for each family of keys. Who writes a record takes the prefix of its key from here.
 * An import and a start judge each record by its row, so no start stops at a record that an import has let through.
 *
 * A row demands what the code that reads the record relies on, and no more: a backup of an earlier beta stays good.
 */
export const storeKeys = {
  credential: family('credential/{username}', {
    holds: 'a credential: who may publish, subscribe to or read what; salt and hash of the password',
    owner: 'acl',
    content: 'credentials',
    value: json(
      object(
        {
          username: text,
          role: oneOf('publisher', 'subscriber', 'reader'),
          label: text,
          createdAt: instant,
          institutions: list(text),
          filters: list(text),
          classes: list(text),
          salt: text,
          hash: text,
        },
        {
          revokeAt: instant,
          user: text,
          login: object({ userId: text, generation: number }, { loginId: text }),
          clientIdPrefix: text,
        },
      ),
      'username',
    ),
  }),
  ban: family('ban/{kind and value}', {
    holds: 'who is kept out: an address or network, a credential or a client id, why and until when',
    owner: 'listener',
    content: 'bans',
    value: json(
      object({
        kind: oneOf('address', 'user', 'client'),
        value: text,
        reason: text,
        since: instant,
        until: instant,
      }),
    ),
  }),
  credentialUse: family('credential-use/{username}', {
    holds: 'when the credential was last used',
    owner: 'hub.ts',
    value: json(object({ lastAt: instant })),
  }),
  credentialName: family('credential-name/{username}', {
    holds: 'a user name with a second that has not come yet: it is given out once, also after a revocation',
    owner: 'acl',
    key: anyKey,
    value: anything,
  }),
  user: family('user/{userId}', {
    holds: 'a user of the HTTPS API: institution, permissions, hash of the password, links to choose one',
    owner: 'bridge-https/users',
    content: 'users',
    value: json(
      object(
        {
          userId: text,
          email: text,
          institutionId: text,
          permissions: list(text),
          createdAt: instant,
          generation: number,
          resets: list(object({ channel: text, hash: text, expiresAt: instant })),
        },
        {
          emailVerified: flag,
          passwordHash: text,
          endedLogins: list(object({ id: text, expiresAt: instant })),
        },
      ),
      'userId',
    ),
  }),
  institutionContact: family('institution-contact/{institutionId}', {
    holds:
      'the address to which an institution gets mails, whether it was confirmed, and the secret that ends them',
    owner: 'bridge-https/users',
    content: 'contacts of institutions',
    value: json(
      object(
        { institutionId: text, email: text, setAt: instant, unsubscribe: text },
        { confirm: object({ hash: text, until: instant }), confirmedAt: instant, unsubscribedAt: instant },
      ),
      'institutionId',
    ),
  }),
  institutionTold: family('institution-told/{institutionId}', {
    holds: 'what the contact of an institution was mailed about, and when',
    owner: 'watch',
    isReadAtStart: false,
    value: json(
      object({
        contactSetAt: instant,
        mails: list(moment),
        silent: fields(moment),
        loops: fields(moment),
        codes: fields(moment),
      }),
    ),
  }),
  familiarPlace: family('familiar-place/{account address}', {
    holds: 'when an account last logged in from an address',
    owner: 'bridge-https/users',
    value: json(object({ at: moment })),
  }),
  signingKey: family('signing-key/{kid}', {
    holds: 'a key that signs tokens and pushes, the private part included',
    owner: 'certs',
    value: json(
      object(
        {
          kid: text,
          createdAt: instant,
          privateJwk: jwk(createPrivateKey),
          publicJwk: jwk(createPublicKey),
        },
        { signsFrom: instant },
      ),
      'kid',
    ),
  }),
  ticketKey: family('ticket-key/current', {
    holds: 'when it was made, and the key that encrypts the tickets of TLS sessions',
    owner: 'certs',
    isOfNodes: true,
    value: matching(/^\d+ [A-Za-z0-9+/]{64}$/, 'a time and 48 bytes in Base64'),
  }),
  subscription: family('subscription/{name}', {
    holds: 'a webhook: its livestream, URL and contact; whether it is disabled or paused',
    owner: 'delivery/webhook',
    content: 'webhooks',
    value: json(
      object(
        {
          name: text,
          topicId: text,
          url: text,
          contact: text,
          institutionId: text,
          serviceAccount: text,
          createdAt: instant,
        },
        {
          ackDeadlineSeconds: number,
          retryPolicy: orNull(text),
          createdBy: text,
          from: instant,
          livestreams: list(text),
          kinds: list(text),
          types: list(text),
          ordering: oneOf('livestream'),
          maxAge,
          delay: integer(0),
          isBeginning: flag,
          disabledAt: instant,
          pausedAt: instant,
          pausedBy: text,
          isPausedByOwner: flag,
          toldBy: text,
          secrets: list(object({ secret: text }, { until: instant })),
        },
      ),
      'name',
    ),
  }),
  pushStanding: family('push-standing/{name}', {
    holds: 'since when a webhook that has failed once works, or does not',
    owner: 'delivery/webhook',
    value: json(
      object(
        { state: oneOf('active', 'retrying'), since: instant, reason: orNull(text) },
        { gone: object({ at: moment, ms: number }) },
      ),
    ),
  }),
  topic: family('topic/{livestreamId}', {
    holds: 'when a livestream got its first event, and whose it is if no feed lists it',
    owner: 'validator',
    content: 'topics',
    key: anyKey,
    value: json(object({ id: text, createdAt: instant }, { institutionId: text, folded: text }), 'id'),
  }),
  heard: family('heard/{livestreamId}', {
    holds: 'how long a livestream usually says nothing, by the hour of the week, and when it was heard last',
    owner: 'watch',
    value: json(object({ institutionId: text, gaps: text, hour: integer(0), since: moment, at: moment })),
  }),
  counted: family('counted/{week}/{institutionId}/{livestreamId}', {
    holds: 'what was counted of the events of a livestream in a week, for the report of its institution',
    owner: 'watch',
    isReadAtStart: false,
    value: json(
      object({ sums: fields(integer(0)), longest: list(object({ from: moment, minutes: integer(0) })) }),
    ),
  }),
  refused: family('refused/{week}/{institutionId}', {
    holds: 'how many events of an institution were refused in a week, by the codes of their errors',
    owner: 'watch',
    isReadAtStart: false,
    value: json(object({ events: integer(0), codes: fields(integer(0)) })),
  }),
  feed: family('feed/{kind}/{source}', {
    holds:
      'the last good livestream feed of a source (`good`), its last check (`checked`), and what fell out of feeds (`dropped`)',
    owner: 'validator/feed',
    isReadAtStart: false,
    key: anyKey,
    // What cannot be read of these is ignored: `validator/feed/stored-feeds.ts`.
    value: anything,
  }),
  journal: family('journal/{position}', {
    holds: 'an accepted message or a report, with its payload',
    owner: 'journal',
    content: 'events',
    isLarge: true,
    isReadAtStart: false,
    numbered: 'key',
    value: headed(
      object(
        { topic: text, qos: oneOf(0, 1, 2), queue: queueRule, at: moment },
        {
          stream: text,
          institutionId: text,
          isReport: flag,
          isRepetition: flag,
          hasErrors: flag,
          // 0 would say that the message has its payload from itself: its reader would never end.
          sharedWith: integer(1),
          refused: excerpt,
          creator: text,
          retained: object({ slot: text, time: moment }, { expires: moment }),
        },
      ),
    ),
  }),
  every: family('every/{stream}/{position}', {
    holds: 'index of the journal: a returning session gets all these messages of a stream',
    owner: 'journal',
    numbered: 'key',
    value: indexed,
  }),
  latest: family('latest/{stream}/{position}', {
    holds: 'index of the journal: a returning session gets the newest of each topic of a stream',
    owner: 'journal',
    isLarge: true,
    isReadAtStart: false,
    numbered: 'key',
    value: indexed,
  }),
  retained: family('retained/{topic}⏎{slot}', {
    holds: 'the position of a retained value',
    owner: 'journal',
    content: 'retained messages',
    key: { form: /^[^\n]*\n".*"$/s, expected: 'a topic, a line break and a slot as JSON' },
    numbered: 'value',
    value: matching(/^\d{16}/, position),
  }),
  ended: family('ended/{topic}', {
    holds: 'that the topic once had a retained value: bridges may have kept it',
    owner: 'journal',
    key: anyKey,
    value: anything,
  }),
  cleared: family('cleared/{topic}', {
    holds: 'the position at which an operator cleared the topic',
    owner: 'journal',
    isReadAtStart: false,
    key: anyKey,
    numbered: 'value',
    value: matching(/^\d{16}/, position),
  }),
  clockBehind: family('clock-behind', {
    holds: 'the position of the last commit of a node whose clock was behind',
    owner: 'journal',
    isReadAtStart: false,
    numbered: 'value',
    value: matching(/^\d{16}/, position),
  }),
  trimming: family('trimming/state', {
    holds: 'from where on the journal is whole, and how far its trimming has got',
    owner: 'journal',
    passed: passedIn<{ floor: number; passed: number }>(({ floor, passed }) => [floor - 1, passed - 1]),
    value: json(
      object({
        floor: number,
        passed: number,
        historyFrom: number,
        historyBytes: number,
        window: list(object({ upTo: number, bytes: number, at: moment })),
        round: object({ at: text, bytes: number }),
      }),
    ),
  }),
  session: family('session/{clientId}', {
    holds: 'a session: its subscriptions, whose it is, how far it has got in the journal',
    owner: 'broker/session',
    content: 'sessions',
    passed: passedIn<{ upTo: number; subscriptions: [string, number, since: number][] }>(
      ({ upTo, subscriptions }) => [upTo, ...subscriptions.map(([, , since]) => since)],
    ),
    value: json(
      object(
        {
          clientId: text,
          clean: flag,
          permission: text,
          principal,
          createdAt: moment,
          version: number,
          dropped: number,
          ...place.required,
          subscriptions: list(tuple(text, oneOf(0, 1, 2), number)),
        },
        {
          node: text,
          disconnectedAt: moment,
          offlineAt: moment,
          ...place.optional,
        },
      ),
      'clientId',
    ),
  }),
  cleanSession: family('clean-session/{clientId}', {
    holds: 'the node that the client of a clean session is connected to',
    owner: 'broker/session',
    isOfNodes: true,
    isReadAtStart: false,
    key: anyKey,
    value: json(object({ node: text, permission: text, version: number })),
  }),
  incoming: family('incoming/{clientId}/{packetId}', {
    holds:
      'a packet identifier of a QoS 2 message of the client, until PUBREL, and what identifies its content',
    owner: 'broker/session',
    isReadAtStart: false,
    key: { form: /^[^/]+\/\d{1,5}$/, expected: 'a name and a packet identifier', isEncoded: true },
    value: matching(/^\d+(\.\d+)?( [0-9a-f]{16})?$/, 'a number, and the digest of a message'),
  }),
  outgoing: family('outgoing/{clientId}/{position}', {
    holds: 'a QoS 2 message to the client, until PUBCOMP; with `/released` behind it, that it is released',
    owner: 'broker/session',
    isReadAtStart: false,
    key: {
      form: /^[^/]+\/\d{16}(\/released)?$/,
      isEncoded: true,
      expected: 'a name, 16 digits and perhaps /released',
    },
    // That a message is released is in the key alone.
    value: (value, name) => (name === 'released' ? undefined : outgoing(value, name)),
  }),
  progress: family('progress/{run}', {
    holds:
      'how far the sessions on a node have got, stored once a second, from a start of the node to its end',
    owner: 'broker/session',
    key: { form: /^[^/]+$/, expected: 'a name' },
    passed: passedIn<{ upTo: number; unsettled: Record<string, { upTo: number } | null> }>(
      ({ upTo, unsettled }) => [upTo, ...Object.values(unsettled).map((place) => place?.upTo ?? 0)],
    ),
    value: json(
      object(
        {
          version: number,
          upTo: number,
          unsettled: fields(orNull(object({ ...place.required, createdAt: number }, { ...place.optional }))),
        },
        { end: object({ head: number, ran: number }) },
      ),
    ),
  }),
  will: family('will/{clientId}/{id}', {
    holds: 'the will of a connection, until the connection ends',
    owner: 'broker/login',
    value: headed(
      object({ node: text, clientId: text, principal, topic: text }, { retain: flag, address: text }),
    ),
  }),
  time: family('time/hub', {
    holds: 'how long the hub has run, by which sessions expire',
    owner: 'broker',
    value: json(object({ ran: moment, wall: moment })),
  }),
  work: family('work/{queue}/{sequence}', {
    holds: 'a message that waits for a webhook or a plugin target',
    owner: 'delivery/queue',
    content: 'waiting deliveries',
    numbered: 'value',
    value: positioned(object(item, timesOfItem), 'sequence'),
  }),
  workShared: family('work-shared/{position}', {
    holds: 'a message that waits for several webhooks, and in which set of queues',
    owner: 'delivery/queue',
    content: 'waiting deliveries of several webhooks',
    numbered: 'key',
    value: json(object(sharedItem, { element })),
  }),
  workSet: family('work-set/{set}', {
    holds: 'the names of queues in which messages wait alike',
    owner: 'delivery/queue',
    value: json(list(text)),
  }),
  workSetUsed: family('work-set-used/{set}', {
    holds: 'the position of the last message that waits in a set of queues',
    owner: 'delivery/queue',
    numbered: 'value',
    value: matching(/^\d{16}$/, position),
  }),
  workPlace: family('work-place/{queue}', {
    holds: 'up to which position no message of `work-shared/` waits in the queue any more',
    owner: 'delivery/queue',
    passed: (value) => [Number(value)],
    value: matching(/^\d{16}$/, position),
  }),
  workDead: family('work-dead/{queue}/{sequence}', {
    holds: 'a dead letter, with its payload',
    owner: 'delivery/queue',
    content: 'dead letters',
    value: positioned(object({ ...item, givenUpAt: instant, reason: text }, timesOfItem), 'sequence'),
  }),
  workSeen: family('work-seen/{fingerprint}/{scope}', {
    holds: 'that an event was accepted within the last hour, by which a repetition is recognised',
    owner: 'validator',
    key: anyKey,
    value: matching(/^\d+(\.\d+)? /, 'a time and an id'),
  }),
  workLease: family('work-lease/{queue}', {
    holds: 'which node works the queue off',
    owner: 'delivery/runner',
    isOfNodes: true,
    key: anyKey,
    value: anything,
  }),
  attempt: family('attempt/{queue}/{sequence}', {
    holds: 'one of the last attempts of a queue, and how it ended',
    owner: 'delivery',
    isReadAtStart: false,
    value: json(attempt),
  }),
  lifecycle: family('lifecycle/{track}', {
    holds: 'the life cycle of a track of the HTTPS API: its state, sunset and brown-out',
    owner: 'bridge-https/lifecycle',
    content: 'settings of the life cycle',
    value: json(
      object(
        {
          track: text,
          state: oneOf('live', 'deprecated', 'gone'),
          announcedAt: orNull(instant),
          sunset: orNull(instant),
          link: orNull(webUrl),
          retiredAt: orNull(instant),
        },
        // 3.0.0-beta.1 knew no brown-outs.
        { brownoutUntil: orNull(instant) },
      ),
      'track',
    ),
  }),
  traffic: family('traffic/{track route day slot}', {
    holds: 'how many requests a route got on a day',
    owner: 'bridge-https/lifecycle',
    value: json(object({ track: text, route: text, day: text, requests: number })),
  }),
  lastRequest: family('last-request/{track userId}', {
    holds: 'the last request of a user to a track',
    owner: 'bridge-https/lifecycle',
    value: json(
      object({
        track: text,
        route: text,
        userId: text,
        email: text,
        institutionId: text,
        lastAt: instant,
      }),
    ),
  }),
  audit: family('audit/{time} {id}', {
    holds: 'an entry of the audit log. A node without Redis has it in the file `audit.log` instead',
    owner: 'admin',
    isReadAtStart: false,
    isKeptByImport: true,
    key: anyKey,
    // The embedded store keeps the audit log in a file of lines.
    value: (value, name) =>
      value.includes(10)
        ? 'a single line'
        : json(object({ at: instant, who: text, action: text, target: text }))(value, name),
  }),
  health: family('health/probe', {
    holds: 'when a node last tried whether the store takes a write',
    owner: 'admin',
    isReadAtStart: false,
    key: anyKey,
    value: anything,
  }),
  member: family('member/{slot}', {
    holds: 'a node that uses the store',
    owner: 'store/nodes',
    isOfNodes: true,
    isKeptByImport: true,
    key: { form: /^\d+$/, expected: 'digits' },
    value: json(object({ node: text, name: text, number }, { url: text })),
  }),
  lock: family('lock/{name}', {
    holds: 'which node may change something alone, such as credentials',
    owner: 'store',
    isOfNodes: true,
    key: anyKey,
    value: json(object({ number, claim: orNull(text) })),
  }),
  import: family('import/{kind}', {
    holds: 'the mark of an import that is not finished (`mark`), and which export was imported last (`last`)',
    owner: 'admin/backup',
    isOfNodes: true,
    key: anyKey,
    value: anything,
  }),
  number: family('number', {
    holds: 'the last position that was taken. A Redis has it in its hash `log-head`',
    owner: 'store',
    isKeptByImport: true,
    value: matching(/^\d+$/, 'a number'),
  }),
  format: family('format', {
    holds: 'the format of the store: another release refuses it',
    owner: 'store',
    isKeptByImport: true,
    value: matching(/^\d+$/, 'a number'),
  }),
}

/** The families by their prefix. */
export const families: ReadonlyMap<string, Family> = new Map(
  Object.values(storeKeys).map((family) => [family.prefix, family]),
)

type FamilyRow = Pick<Family, 'holds' | 'owner' | 'value'> & Partial<Omit<Family, 'path' | 'prefix'>>

function family<Path extends string>(path: Path, row: FamilyRow): Family & { prefix: PrefixOf<Path> } {
  return {
    path,
    key: keyFormOf(path),
    isReadAtStart: true,
    isLarge: false,
    isOfNodes: false,
    isKeptByImport: false,
    content: undefined,
    numbered: undefined,
    passed: () => [],
    ...row,
    prefix: prefixOf(path) as PrefixOf<Path>,
  }
}

function passedIn<Read>(choose: (read: Read) => readonly number[]): Family['passed'] {
  return (value) => choose(JSON.parse(value.toString()))
}

type PrefixOf<Path extends string> = Path extends `${infer Word}/${string}` ? `${Word}/` : Path

/** What a key or a path begins with: up to the first slash, or all of it if it has none. */
export function prefixOf(key: string): string {
  return key.slice(0, key.indexOf('/') + 1) || key
}

/** The form of keys whose names are all encoded. */
function keyFormOf(path: string): KeyForm {
  const rest = path.slice(prefixOf(path).length)
  if (rest === '') return { form: /^$/, expected: 'nothing' }
  const parts = rest.split('/').map((part) => {
    if (part === '{position}' || part === '{sequence}') return { form: '\\d{16}', expected: '16 digits' }
    return part.startsWith('{') ? { form: '[^/]+', expected: 'a name' } : { form: part, expected: part }
  })
  const form = new RegExp(`^${parts.map((part) => part.form).join('/')}$`)
  const expected = parts.map((part) => part.expected).join(' and ')
  return { form, expected, ...(rest.includes('{') && { isEncoded: true }) }
}

/** The keys of records that have one name each. */
export function namedKeys({ prefix }: Pick<Family, 'prefix'>) {
  return {
    prefix,
    keyOf: (name: string): string => prefix + encodeURIComponent(name),
    nameOf: (key: string): string => decodeURIComponent(key.slice(prefix.length)),
  }
}
