/** A level of the log; `fatal` is the highest. */
export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal'

export interface MessageRow {
  level: Level
  /** A second level, at which the same message comes in other cases. */
  also?: Level
  /** Fields of the line besides `level`, `time`, `pid`, `hostname` and `msg`. With `?`: not in each line. */
  fields?: readonly string[]
  /** One for each event or client while something fails. The log has at most `mostLimited` a minute (`limit.ts`). */
  isLimited?: true
  /** What it means, and what an operator does. Markdown; links lead from `docs/`. */
  means: string
}

const rare = ['times', 'leftOut?'] as const

/**
 * All messages of the log, by their text (`msg`). A call of the log that names another text, a level or fields that are
 * not those of the row does not compile (`telemetry/log.ts`). Lines of drivers and of Fastify have texts of their own.
 */
export const messages = {
  // Readers over HTTPS.
  'a stream could not begin': {
    level: 'warn',
    fields: ['err'],
    isLimited: true,
    means: 'the store did not answer; the reader comes back by itself',
  },
  'streams wait for the store': {
    level: 'warn',
    fields: ['err'],
    means:
      'the node could not read the journal, and tries again every second; no event is missing afterwards',
  },
  // Start and end of a node.
  'hub ready': {
    level: 'info',
    fields: ['mqttPort', 'httpsPort', 'adminSocket'],
    means: 'the node accepts clients',
  },
  'a worker ended, and starts again': {
    level: 'error',
    fields: ['worker', 'code', 'retryInMs'],
    means:
      'with `HUB_WORKERS`: its clients reconnect. `code`: its exit code, null where a signal ended it. Its last lines in the log, or the log of the system, name the reason',
  },
  'a worker hangs, and is killed': {
    level: 'error',
    fields: ['worker', 'pid'],
    means:
      'it gave no sign of life for 20 s: its event loop stood still, or somebody has stopped it. Another starts, and clients reconnect; if it comes again, report it with the log of the worker before that',
  },
  'the worker accepts clients again': {
    level: 'info',
    fields: ['worker'],
    means: 'the end of the former',
  },
  'a worker does not take messages': {
    level: 'error',
    fields: ['err'],
    means: 'with `HUB_WORKERS`: most likely it is about to end',
  },
  'a worker could not be started': {
    level: 'error',
    fields: ['err'],
    means:
      'with `HUB_WORKERS`: the system has no memory, process or open file left, or the program of Node.js is gone. It is tried again every few seconds',
  },
  'the key of TLS tickets could not be replaced': {
    level: 'warn',
    fields: ['err'],
    means: 'the store did not take it; the node tries again each minute, and clients resume with the old key',
  },
  stopping: { level: 'info', fields: ['signal'], means: 'the node finishes what it has received, and ends' },
  'not stopped in time': {
    level: 'error',
    means: 'the process ends all the same; every acknowledged event is on disk',
  },
  'stopped with an error': {
    level: 'error',
    fields: ['err'],
    means: 'at the end of the process; every acknowledged event is on disk',
  },
  'not everything could be closed': {
    level: 'error',
    fields: ['err'],
    means: 'at the end of the process; every acknowledged event is on disk',
  },
  'the node cannot be closed': {
    level: 'fatal',
    fields: ['err'],
    means: 'it was to start again: the process ends with exit code 1',
  },
  'the node lost track of the others, and starts again': {
    level: 'error',
    fields: ['err'],
    means: 'Redis was emptied or restored, or the node was away for too long: its clients reconnect',
  },
  'the node cannot start again yet': {
    level: 'error',
    fields: ['err', 'retryInMs'],
    means: 'it tries again, after 5 s at the latest',
  },
  'state is out of date': {
    level: 'fatal',
    fields: ['err'],
    means: 'the same in a hub that tests start in their process: it does not start again',
  },
  'stage prod with a setting for trying out': { level: 'warn', fields: ['problem'], means: 'at start' },
  'strangers may look at the on-air page': {
    level: 'info',
    means:
      'at start: [`HUB_PUBLIC_PAGE`](operators.md#the-on-air-page) is `true`, or unset where a node is tried out',
  },
  'nobody may read /metrics': { level: 'info', means: 'at start on stage `prod`: set `HUB_METRICS_TOKEN`' },
  'proxyFrom is unset: whoever reaches the ports may name any client address in a PROXY header': {
    level: 'warn',
    means:
      'at start, with `HUB_PROXY_PROTOCOL=true`: see [addresses of clients](operators.md#addresses-of-clients)',
  },
  'open files allow fewer connections than HUB_MAX_CONNECTIONS': {
    level: 'warn',
    fields: ['wanted', 'openFiles', 'room', 'roomOfBoth'],
    means:
      'at start: all workers together have `room` for so many connections over MQTT, for so many over HTTPS, and `roomOfBoth` in all. [`openFiles`](deployment.md#sizing) is the limit of one process',
  },
  'the link for the first operator is in a file': {
    level: 'info',
    fields: ['file'],
    means:
      'the [first operator](operators.md#the-first-operator) has not been made, and the output goes to no terminal',
  },
  'the link for the first operator cannot be written': {
    level: 'error',
    fields: ['err', 'file'],
    means:
      'remove what stands in its place, or free the disk, and start the node again; or make the operator with `hubctl`',
  },
  'the clock has jumped': {
    level: 'warn',
    fields: ['jumpSeconds', 'now'],
    means: '[what goes by the clock](operators.md#sessions-and-clients)',
  },
  'the clock is behind that of the last run': {
    level: 'warn',
    fields: ['jumpSeconds', 'now'],
    means: '[what goes by the clock](operators.md#sessions-and-clients)',
  },
  'log lines were lost: they could not be written': {
    level: 'warn',
    fields: ['lines'],
    means: 'how many `lines`; with the first one for which there is room again',
  },

  // Connections.
  'client connected': {
    level: 'info',
    fields: ['clientId', 'username', 'remoteAddress', 'resumed'],
    means: '`resumed`: the client has its earlier session again',
  },
  'client disconnected': {
    level: 'info',
    fields: ['clientId', 'reason'],
    means: '`reason`: why the hub closed the connection, if it did',
  },
  'log-in refused': {
    level: 'warn',
    fields: ['clientId?', 'username?', 'problem?', 'remoteAddress', 'reason', ...rare],
    means:
      'with `reason`, as in the metrics, and the `problem` of a certificate; once a minute for each address and reason. `times` is the number of refusals in the line, and the names are those of the last one',
  },
  'connection refused': {
    level: 'warn',
    fields: ['remoteAddress?', 'reason', 'detail?', ...rare],
    means: 'the same for connections that were refused before a log-in',
  },
  'connection closed': {
    level: 'warn',
    also: 'info',
    fields: ['clientId?', 'remoteAddress', 'reason', 'detail'],
    means: 'by the hub, with `reason`, as in the metrics; info with `takeover` or `operator`',
  },
  'too many persistent sessions of one credential': {
    level: 'warn',
    fields: ['clientId', 'username', 'remoteAddress', 'sessions', ...rare],
    means: 'once a minute for each credential: [more](operators.md#sessions-and-clients)',
  },
  'MQTT listener': {
    level: 'error',
    fields: ['err'],
    means: 'the port failed, with the reason of the system',
  },
  'HTTPS listener accepts': { level: 'info', means: 'at start, from Fastify' },
  'the headers of a proxy contradict each other': {
    level: 'warn',
    fields: ['remoteAddress', ...rare],
    means:
      '`Forwarded` and `X-Forwarded-For` lead to different clients. The proxy writes one of them, and a client sent the other: let the proxy remove it. At most once a minute for each proxy',
  },
  'TLS connection failed': {
    level: 'warn',
    fields: ['remoteAddress', 'reason', 'leftOut'],
    means:
      'no common TLS version, plain text instead of TLS, a certificate that the client does not trust. Once in a minute for each address and reason, at most 20 on each port; `leftOut` counts the others',
  },
  'TLS handshake failed': {
    level: 'debug',
    fields: ['err', 'remoteAddress'],
    means: 'each of them, with the error',
  },
  request: {
    level: 'info',
    also: 'debug',
    fields: [
      'reqId',
      'method',
      'path',
      'route',
      'status',
      'ms?',
      'remoteAddress',
      'userId?',
      'reason?',
      'leftOut?',
    ],
    means:
      'one per HTTPS request (debug for `/`, `/health` and `/metrics`), of those without a user at most 600 a minute; `leftOut` counts those without a line before this one. `reqId` is the header `x-request-id` of the answer. A broken request has no `ms`, a null `route` and often a `reason`',
  },
  'request failed': {
    level: 'error',
    fields: ['err'],
    isLimited: true,
    means: 'an answer 500, with the reason that the answer does not give',
  },
  'reset link mailed': { level: 'info', fields: ['userId'], means: 'a user asked for a new password' },
  'reset link not mailed': {
    level: 'error',
    fields: ['err', 'userId'],
    means: 'the mail server refused or cannot be reached',
  },
  'reset link not made': { level: 'error', fields: ['err'], means: 'the store failed' },

  // Events.
  'event refused': {
    level: 'info',
    fields: ['outcome', 'event', 'institutions', 'services?', 'error'],
    means: 'the first error, and at most five services',
  },
  'event took longer than 220 ms': {
    level: 'warn',
    fields: ['id', 'event'],
    isLimited: true,
    means: 'over the [budget](operators.md#metrics)',
  },
  'event not stored and not acknowledged': {
    level: 'error',
    fields: ['err', 'event'],
    isLimited: true,
    means: 'disk full or broken: act at once',
  },
  'event not stored': {
    level: 'error',
    fields: ['err', 'event'],
    isLimited: true,
    means: 'the same over HTTPS: the answer is 500',
  },
  'refused event not in the history': {
    level: 'warn',
    fields: ['err', 'event'],
    isLimited: true,
    means: 'over HTTPS: the store failed. The publisher has its answer all the same',
  },
  'publish denied and dropped': {
    level: 'warn',
    fields: ['username', 'clientId', 'topic', 'isWill', 'code', 'reason', ...rare],
    means: 'once a minute for each credential; `times` is the number of denials in the line',
  },
  'subscription denied': {
    level: 'warn',
    fields: ['clientId', 'username', 'filter', 'reason', 'denied', ...rare],
    means:
      'once a minute for each credential. Also for a filter that a client had, and that is no longer allowed when it comes back',
  },

  // Sessions.
  'log-in not stored': {
    level: 'error',
    fields: ['err', 'clientId'],
    isLimited: true,
    means: 'the node closes the connection, the client comes back, and nothing acknowledged is lost',
  },
  'subscription not stored': {
    level: 'error',
    fields: ['err', 'clientId'],
    isLimited: true,
    means: 'the same',
  },
  'end of subscription not stored': {
    level: 'error',
    fields: ['err', 'clientId'],
    isLimited: true,
    means: 'the same',
  },
  'release of a QoS 2 message not stored': {
    level: 'error',
    fields: ['err', 'clientId'],
    isLimited: true,
    means: 'the same',
  },
  'retained messages not delivered': {
    level: 'error',
    fields: ['err', 'clientId'],
    isLimited: true,
    means: 'the same',
  },
  'messages not sent yet': {
    level: 'error',
    fields: ['err', 'clientId'],
    isLimited: true,
    means:
      'messages for a persistent session cannot be read or stored: the node tries again every half second while the client is there',
  },
  'will not published yet': { level: 'error', fields: ['err'], means: 'it is tried again' },
  'will not removed yet': { level: 'error', fields: ['err'], means: 'it is tried again' },
  'end of connection not stored': {
    level: 'error',
    fields: ['err', 'clientId?'],
    isLimited: true,
    means: 'the store failed while the node noted a lost client',
  },
  'sessions not stored': {
    level: 'error',
    fields: ['err'],
    means: 'the store failed while the node noted lost clients',
  },
  'expired messages and sessions not removed': {
    level: 'error',
    fields: ['err'],
    means: 'the store failed while the node cleared up',
  },
  'progress of sessions not stored': {
    level: 'warn',
    fields: ['err'],
    means:
      'the places of the sessions of this node: it tries again a second later; a crash meanwhile repeats more messages',
  },
  'progress of sessions not removed': {
    level: 'warn',
    fields: ['err'],
    means: 'at the stop: another node, or the next start, removes it',
  },
  'running time not stored': {
    level: 'warn',
    fields: ['err'],
    means: 'at the stop: sessions [expire](operators.md#sessions-and-clients) up to 30 s later',
  },

  // Webhooks and plugin targets.
  'delivery failed': {
    level: 'warn',
    also: 'debug',
    fields: ['queue', 'status', 'reason', 'failures', 'retryInMs'],
    means: 'the first of a row; the others are debug',
  },
  'queue goes on': { level: 'info', fields: ['queue', 'failures'], means: 'it was acknowledged again' },
  'refused message steps aside': {
    level: 'warn',
    fields: ['queue', 'messageId', 'refusals'],
    means: 'the others of that queue go on',
  },
  'the endpoint is gone': {
    level: 'warn',
    fields: ['queue', 'status'],
    means:
      'it answered 410 and nothing else for an hour: the subscription is disabled. Of a plugin target: its waiting items become dead letters',
  },
  'queue closed': {
    level: 'info',
    fields: ['queue', 'items', 'reason'],
    means: '`push` has retired: the number of `items` that became dead letters',
  },
  'contact mailed': {
    level: 'info',
    fields: ['subscription'],
    means: 'the contact of a subscription that was disabled',
  },
  'contact not mailed': {
    level: 'error',
    also: 'warn',
    fields: ['subscription', 'err?', 'reason?'],
    means: 'a warning with `reason` where the address had three mails within the hour',
  },
  'not stored yet that the contact was told': {
    level: 'error',
    fields: ['err', 'subscription'],
    means: 'it is tried again. If the node stops before, the contact hears of it twice',
  },
  'contacts of disabled subscriptions not told': {
    level: 'error',
    fields: ['err'],
    means: 'the store failed, and cannot say who was told: another node, or the next start, tells them',
  },
  'queue of a removed subscription not removed yet': {
    level: 'warn',
    fields: ['err', 'queue'],
    means: 'the store failed after the subscription was removed: the `queue` is removed as soon as it can',
  },
  'webhook does not begin yet': {
    level: 'warn',
    fields: ['err', 'queue'],
    isLimited: true,
    means:
      'its `queue` does not have its earlier events yet: a node does not answer, or the store failed. The node tries again every second, and sends nothing to that webhook before',
  },
  'state of a queue not stored': {
    level: 'error',
    fields: ['err'],
    means: 'disk full or broken; deliveries may be repeated',
  },
  'queue stopped for a moment': {
    level: 'error',
    fields: ['err', 'queue'],
    isLimited: true,
    means: 'disk full or broken; deliveries may be repeated',
  },
  'an output does not take the title': {
    level: 'warn',
    fields: ['output', 'livestreamId', 'reason'],
    means:
      'three attempts in a row failed; the hub goes on trying. `hubctl outputs test` shows request and answer ([outputs](outputs.md))',
  },
  'outputs wait for the store': {
    level: 'warn',
    fields: ['err'],
    means: 'the node could not read the journal, and tries again every second',
  },
  'leases of nodes that are gone not removed yet': {
    level: 'warn',
    fields: ['err'],
    means: 'the store did not answer; it is done when the next node joins or leaves',
  },
  'queues not tidied': { level: 'error', fields: ['err'], means: 'disk full or broken' },
  'queue stood still, and is picked up': {
    level: 'error',
    fields: ['queue', 'seconds'],
    means: 'never, unless the hub has a fault; `hub_queues_stuck_total` counts it',
  },
  'queue not picked up': { level: 'error', fields: ['err', 'queue'], means: 'it is tried again' },
  'content of a work item is missing': {
    level: 'error',
    fields: ['queue', 'messageId'],
    means: 'the message becomes a dead letter',
  },
  'plugin driver ended': {
    level: 'error',
    also: 'debug',
    fields: ['file', 'reason', 'stack', 'startsInMs'],
    means:
      'the [driver](plugins.md#what-a-driver-cannot-do) of `plugin` has ended or cannot be loaded, and starts again after `startsInMs`; `stack` of an error that it did not catch. Mend the driver. Further ends for the same reason are debug',
  },
  'the other nodes could not be told who can work a queue off': {
    level: 'warn',
    fields: ['err', 'queue'],
    means: 'the store failed: what waits for a driver that does not start waits a minute longer at most',
  },
  'plugin driver runs again': { level: 'info', fields: ['file'], means: 'after it had ended' },
  'plugin driver wrote': {
    level: 'info',
    fields: ['line'],
    means: 'a `line` of its output, for example of `console.log`',
  },
  'plugin driver logs too much, and lines were left out': {
    level: 'warn',
    fields: ['lines'],
    means: 'how many `lines`: it logged more than 100 a second',
  },
  'plugin driver writes too much, and lines were left out': {
    level: 'warn',
    fields: ['lines', 'bytes'],
    means:
      'how many `lines`: it wrote more than 20 a second to its output; of output beyond 64 KiB a second the `bytes`',
  },
  'plugin driver not closed': {
    level: 'error',
    fields: ['err', 'queue'],
    means: 'at the stop: an error of the driver',
  },

  // The livestream feed.
  'feed loaded': { level: 'info', fields: ['source', 'items'], means: 'with the number of livestreams' },
  'feed loaded by another node': {
    level: 'info',
    fields: ['source', 'items'],
    means: 'with the number of livestreams',
  },
  'the feed is good again': {
    level: 'info',
    fields: ['source', 'items'],
    means: 'it was refused before, and has not changed meanwhile; a changed one is `feed loaded`',
  },
  'feed refused, the last good one stays': {
    level: 'error',
    fields: ['source', 'reason', 'problem', 'kept'],
    means: '[the reasons](operators.md#the-livestream-feed)',
  },
  'feed refused, every event is blocked until there is a good one': {
    level: 'error',
    fields: ['source', 'reason', 'problem', 'kept'],
    means: 'the same on a node that never had a feed: act at once',
  },
  'feedCanaries that the feed in use lacks are ignored': {
    level: 'warn',
    fields: ['ignored'],
    means: 'correct `feedCanaries`',
  },
  'the feed of another node could not be taken over yet': {
    level: 'error',
    fields: ['err'],
    means: 'the node goes on with the feed before it, and tries again',
  },
  'a stored feed cannot be read, and is ignored': {
    level: 'error',
    fields: ['key', 'problem'],
    means: 'the source is read anew',
  },
  'the time of the last good feed is not stored': {
    level: 'warn',
    fields: ['err'],
    means: 'the store failed: after a restart with a source that is away, `hub_feed_age_seconds` is too high',
  },
  'the other nodes could not be told of a refresh of the feed': {
    level: 'warn',
    fields: ['err'],
    means: 'ask again: `hubctl feed refresh`',
  },
  'the livestream feed in use comes from another source than HUB_FEED': {
    level: 'warn',
    fields: ['source', 'loadedFrom', 'items'],
    means: 'at start and at each refresh while that is so',
  },

  // Certificates.
  'CA replaced': {
    level: 'info',
    fields: ['setting', 'path'],
    means: '`HUB_PUSH_CA`, `HUB_FEED_CA`, `smtp.ca` or `redis.ca`; new connections trust it',
  },
  'the replaced CA cannot be used, the old one stays': {
    level: 'error',
    fields: ['setting', 'path', 'reason'],
    means: 'replace the file by a good one',
  },
  'certificate replaced': {
    level: 'info',
    fields: ['certPath', 'notAfter'],
    means: 'new connections get it',
  },
  'the replaced certificate cannot be used, the old one stays': {
    level: 'error',
    fields: ['certPath', 'keyPath', 'reason'],
    means: 'replace the files by good ones',
  },
  'a listener could not change to the replaced certificate': {
    level: 'error',
    fields: ['err', 'certPath'],
    means: 'that port goes on with the old one',
  },
  'the certificate has expired': {
    level: 'warn',
    fields: ['certPath', 'notAfter'],
    means: 'at start and when it is replaced',
  },
  'the certificate is not valid yet': {
    level: 'warn',
    fields: ['certPath', 'notBefore'],
    means: 'at start and when it is replaced',
  },

  'the certificate may lack the one of its issuer': {
    level: 'warn',
    fields: ['certPath', 'issuer'],
    means:
      'at start and when it is replaced: clients that do not know the `issuer` refuse the hub. Put the intermediate certificates behind it; if `issuer` is a CA of your own, name it in `HUB_TLS_CA`',
  },

  // The store, and the nodes that share it.
  'Redis may lose what was acknowledged': {
    level: 'warn',
    fields: ['problem'],
    means:
      'a [setting of Redis](deployment.md#several-nodes), at start or since then, or `HUB_REDIS_REPLICAS=0` with Sentinels',
  },
  'a setting of Redis is mended': {
    level: 'info',
    fields: ['problem'],
    means: 'the setting of which an earlier line warned keeps what is acknowledged from now on',
  },
  'this node is cut off from the store: clients are sent away': {
    level: 'error',
    fields: ['node'],
    means:
      'it does not reach Redis, and the named node does; its `/readyz` says 503 until it reaches Redis again: look at the [network of this node](deployment.md#when-a-node-is-cut-off)',
  },
  'this node is no longer cut off from the store': {
    level: 'info',
    means: 'it reaches Redis again, or no other node reaches it either; clients may come',
  },
  'Redis is not reachable: nothing is acknowledged': {
    level: 'error',
    fields: ['reason'],
    means:
      'also while the Sentinels replace the master, or [name different ones](deployment.md#several-nodes)',
  },
  'Redis is back': { level: 'info', means: 'it has taken a write' },
  'the log of changes of Redis cannot be read: nothing is acknowledged': {
    level: 'error',
    fields: ['reason'],
    means:
      'after 3 s: Redis answers, but this node cannot read what the others change. Look at the permissions of its user in Redis, and at `maxclients`',
  },
  'the log of changes of Redis is read again': { level: 'info', means: 'all is well again' },
  'joined the other nodes': {
    level: 'info',
    fields: ['node', 'slot', 'nodes'],
    means: 'there are so many `nodes` now',
  },
  'a node is gone': {
    level: 'warn',
    fields: ['node'],
    means: 'it was stopped, killed or silent for five seconds',
  },
  'the other nodes took this one for dead': {
    level: 'warn',
    means: 'it was cut off from Redis for too long, and stores nothing until it has joined again',
  },
  'not joined again': { level: 'error', fields: ['err'], means: 'it tries again every second' },
  'the other nodes were not told': {
    level: 'warn',
    fields: ['err'],
    means: 'that this one stops: they notice its silence',
  },
  'sign of life not given': {
    level: 'debug',
    fields: ['err'],
    means: 'the next one follows within a second',
  },
  'the store was damaged: it is repaired, entries may be missing': {
    level: 'error',
    fields: ['err', 'movedTo', 'entries'],
    means:
      'the damaged one is `movedTo`, and so many `entries` were saved: see [a damaged store](operators.md#a-damaged-store)',
  },
  'the store was damaged: it is moved aside, and the node starts with an empty one': {
    level: 'fatal',
    fields: ['err', 'movedTo', 'reason'],
    means: '`reason`: why it could not be repaired. See [a damaged store](operators.md#a-damaged-store)',
  },
  'part of the log of the store cannot be read, and is left out': {
    level: 'error',
    fields: ['bytes'],
    means: 'after a power failure these were never acknowledged; otherwise look at the disk',
  },
  'Redis is empty, and … has what this node stored without Redis. To move it: …': {
    level: 'warn',
    means: 'at start, with the commands that [move it](deployment.md#from-one-machine-to-redis)',
  },
  'the node starts again, to take in an export': {
    level: 'info',
    means: '[`hubctl import`](operators.md#files-and-backup)',
  },
  'taking in an export': {
    level: 'info',
    fields: ['records?', 'exportedAt?', 'from?', 'done?', 'of?'],
    means: 'how many `records`; on the way, how many are `done`',
  },
  'the export is taken in': { level: 'info', fields: ['records'], means: 'all of it' },
  'the export was taken in before': {
    level: 'info',
    fields: ['records'],
    means: 'the same file was offered again, or the node was killed at the end of an import',
  },
  'the export is not taken in': {
    level: 'error',
    fields: ['reason', 'movedTo'],
    means: 'the file stays as `movedTo` in the data directory',
  },

  // Loops and silence of livestreams.
  'a livestream plays in a loop with another': {
    level: 'warn',
    fields: ['livestream', 'with'],
    means:
      'each publishes again what the other has published: see [loops](operators.md#loops). Their publishers are warned; tell them both',
  },

  'a livestream is silent': {
    level: 'warn',
    fields: ['livestream', 'institution', 'lastAt'],
    means: 'it has had no event for twice as long as usual at this hour: see [silence](operators.md#silence)',
  },
  'a livestream speaks again': {
    level: 'info',
    fields: ['livestream', 'institution'],
    means: 'the first event after its silence',
  },
  'counts of weekly reports not stored': {
    level: 'error',
    fields: ['err'],
    means: 'nothing to do: they are written again within a minute',
  },
  'contact of an institution mailed': {
    level: 'info',
    fields: ['institution'],
    means: 'its [contact](operators.md#contacts-of-institutions) was told of silence, a loop or refusals',
  },
  'contact of an institution not mailed': {
    level: 'error',
    fields: ['err', 'institution'],
    means:
      'the mail server did not take it: it is tried again after 15 minutes, unless it may have gone out. Look at `smtp`',
  },
  'what is usual of livestreams not stored': {
    level: 'error',
    fields: ['err'],
    means: 'nothing to do: it is written again within the hour',
  },

  // Operators.
  'an admin command failed': {
    level: 'error',
    fields: ['err', 'command', 'who'],
    means: 'with the `command` and who asked',
  },
  'the answer to an admin command was cut off': {
    level: 'error',
    fields: ['err'],
    means:
      'the store failed during `hubctl export`, or so much was changed meanwhile that the log of changes in Redis no longer reached back: export again when there is less traffic, and onto a faster disk',
  },
  'scheduled revocation not in the audit log and the store yet': {
    level: 'error',
    fields: ['err', 'username'],
    means:
      'the revocation is in force, also that of a page whose user is gone. The hub tries again to store it and its [entry](operators.md#audit)',
  },
  'last uses of credentials not stored': {
    level: 'error',
    fields: ['err'],
    means: 'nothing to do: they are written with the next ones',
  },
  'counters of requests not stored': {
    level: 'error',
    fields: ['err'],
    means: 'of the [tracks](operators.md#retiring-the-https-api); they are written with the next ones',
  },
} as const satisfies Record<string, MessageRow>

/** The text of a message. */
export type LogMessage = keyof typeof messages

/** The messages that have this level. */
export type MessageAt<L extends Level> = {
  [M in LogMessage]: L extends LevelsOf<(typeof messages)[M]> ? M : never
}[LogMessage]

type LevelsOf<R extends MessageRow> = R['level'] | (R extends { also: infer Also } ? Also : never)

/** The fields of a message. */
export type FieldsOf<M extends LogMessage> = {
  [F in NamesOf<M> as F extends `${string}?` ? never : F]: unknown
} & { [F in NamesOf<M> as F extends `${infer Name}?` ? Name : never]?: unknown }

type NamesOf<M extends LogMessage> = (typeof messages)[M] extends {
  fields: readonly (infer F extends string)[]
}
  ? F
  : never

/** The text of a message without fields. Where the row has `…`, the line has something else each time. */
export type Plain<M extends LogMessage> = M extends unknown
  ? [NamesOf<M>] extends [never]
    ? Filled<M>
    : never
  : never

type Filled<Text extends string> = Text extends `${infer Before}…${infer After}`
  ? `${Before}${string}${Filled<After>}`
  : Text
