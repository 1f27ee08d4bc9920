import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { mayPublish, mayReceive, maySubscribe, publishes } from './acl/access.ts'
import { createCredentials } from './acl/credentials.ts'
import type { Principal } from './acl/principal.ts'
import { createAedesImport } from './admin/aedes-redis/import-command.ts'
import { auditPath, createAudit } from './admin/audit.ts'
import { createBackupCommands } from './admin/backup/backup-commands.ts'
import { openStoreAtStart } from './admin/backup/opening.ts'
import { createAskNode } from './admin/other-node.ts'
import { watchReach } from './admin/reach.ts'
import { socketPathIn, startAdminSocket } from './admin/socket.ts'
import {
  createHealth,
  createReadiness,
  createReadings,
  createStatus,
  createStoreCheck,
} from './admin/status.ts'
import { openAccounts } from './bridge-https/accounts.ts'
import { startBridge } from './bridge-https/bridge.ts'
import { createLifecycle } from './bridge-https/lifecycle/lifecycle.ts'
import { createTraffic } from './bridge-https/lifecycle/traffic.ts'
import { createContactMail } from './bridge-https/users/contact-mail.ts'
import { createFirstOperator } from './bridge-https/users/first-operator.ts'
import { createInstitutionContacts } from './bridge-https/users/institution-contacts.ts'
import { createInstitutionMail } from './bridge-https/users/institution-mail.ts'
import { createUserLogIn } from './bridge-https/users/log-in.ts'
import { createPasswords, type Passwords } from './bridge-https/users/passwords.ts'
import { createResetMail, resetUrl } from './bridge-https/users/reset-mail.ts'
import { createBroker } from './broker/broker.ts'
import { listenMqtt } from './broker/connection/listener.ts'
import { openFanOut } from './broker/fanout/fanout.ts'
import { createInbox } from './broker/publish.ts'
import { openCertificates } from './certs/open.ts'
import { openTicketKeys } from './certs/ticket-keys.ts'
import { type CaFiles, openCaFiles } from './config/ca-files.ts'
import { limitsOf, maskedConfig, trialSettings } from './config/config.ts'
import { ensureDataDirectory, listening } from './config/expected.ts'
import { isSampleFeed } from './config/sample-feed.ts'
import type { Config } from './config/settings.ts'
import { version } from './config/version.ts'
import { createDeliveries } from './delivery/deliveries.ts'
import { createServiceTokens } from './delivery/webhook/service-tokens.ts'
import { maxSockets, socketsWithin } from './delivery/webhook/sockets.ts'
import { checkWebhookUrl } from './delivery/webhook/webhook-url.ts'
import { createEventIds } from './event/format.ts'
import { createBans } from './listener/bans.ts'
import { createConnectionBounds } from './listener/connection-bounds.ts'
import { createLoginLimit } from './listener/login-limit.ts'
import { connectionsWithinOpenFiles } from './listener/open-files.ts'
import { createPublishRate } from './listener/publish-rate.ts'
import { noOthers } from './listener/shared-counts.ts'
import { createOnAir } from './on-air/on-air.ts'
import { ownOperations } from './operations/institution/operations.ts'
import { ownOf } from './operations/institution/own.ts'
import { createPerformOwn } from './operations/institution/perform.ts'
import { createTail } from './operations/lookups/event-tail.ts'
import { createEventTrace } from './operations/lookups/event-trace.ts'
import type { NodeParts } from './operations/node-parts.ts'
import { operations } from './operations/operations.ts'
import { createCommands, createPerform } from './operations/perform.ts'
import { shareAnswers } from './operations/share-answers.ts'
import { caughtUp } from './store/caught-up.ts'
import { checkReads } from './store/checked-reads.ts'
import { storeKeys } from './store/keys.ts'
import { createCalls } from './store/nodes/calls.ts'
import { createLastSeen } from './store/nodes/last-seen.ts'
import { createFigures } from './telemetry/figures.ts'
import type { Log } from './telemetry/log.ts'
import { createMetrics, daysUntil, type Metrics } from './telemetry/metrics.ts'
import { reasonOf } from './telemetry/reason.ts'
import { startTrend } from './telemetry/trend.ts'
import { createFeedSource } from './validator/feed/feed-source.ts'
import { createFeedFetch } from './validator/feed/fetch-by-ca.ts'
import { createPipeline } from './validator/pipeline.ts'
import { createRepetitions } from './validator/repetitions.ts'
import { createTopics } from './validator/topics.ts'
import { createNotifier } from './watch/notifier.ts'
import { openWatch } from './watch/watch.ts'
import { createWebFiles } from './web/files.ts'
import type { OtherWorkers } from './workers/worker.ts'

export type Hub = Awaited<ReturnType<typeof startHub>>

interface HubOptions {
  /** Directory for development certificates. */
  certsDir?: string
  /** The hashing of passwords. Tests use one that is cheaper than the default. */
  passwords?: Passwords
  /**
   * Closes the node and starts it again. Error: the node has missed changes of other nodes. `import`: the data directory
   * has an export to import. Undefined: this process does not start its node again.
   */
  restart?: (reason: Error | 'import') => void
  /** The other workers, if this process is a worker. */
  others?: OtherWorkers
  /** Aborts when the node is to stop. A start that has not opened the listeners yet then rejects. */
  stopping?: AbortSignal
}

/**
 * Starts one node: loads everything, starts the parts, opens the listeners. Resolves when they accept connections. If the
 * start fails, rejects with the reason and leaves nothing open. `close` finishes all received work.
 */
export async function startHub(config: Config, log: Log, options: HubOptions = {}) {
  const { publicUrl = '', mqttPort, httpsPort } = config
  const { add, start, close } = createParts()
  const given = { config, log, options, reached: { publicUrl, mqttPort, httpsPort }, add }
  try {
    options.stopping?.throwIfAborted()
    const loaded = await load(given)
    await start()
    options.stopping?.throwIfAborted()
    const listening = await listen(given, loaded)
    loaded.reading.end()
    return { ...listening, close }
  } catch (error) {
    await close().catch((err: unknown) => log.error({ err }, 'not everything could be closed'))
    throw error
  }
}

/** A part of a node. */
interface OpenedPart {
  /** Begins work of its own. Everything is loaded, this node has joined the others, and no client is connected. */
  start?(): Promise<void> | void
  /** Takes in nothing more, and finishes what it has begun. No part is closed yet. */
  stop?(): Promise<void> | void
  /** Ends its timers, files and connections. */
  close?(): Promise<void> | void
}

/**
 * The parts of a node, in the order in which they were opened. They start in this order. At the end, all parts stop, and
 * then all parts close: both in the reverse order.
 */
function createParts() {
  const opened: OpenedPart[] = []
  return {
    /** Adds a part that was just opened. Returns the part. */
    add<P extends OpenedPart>(part: P): P {
      opened.push(part)
      return part
    },
    async start(): Promise<void> {
      for (const part of opened) await part.start?.()
    },
    /** A part that fails does not keep the others open. Rejects then with all reasons. */
    async close(): Promise<void> {
      const failures: unknown[] = []
      for (const end of ['stop', 'close'] as const) {
        for (const part of opened.toReversed()) {
          try {
            await part[end]?.()
          } catch (error) {
            failures.push(error)
          }
        }
      }
      if (failures.length > 0) throw new AggregateError(failures, failures.map(reasonOf).join(', '))
    },
  }
}

/** What `load` and `listen` are given. */
interface Given {
  config: Config
  log: Log
  options: HubOptions
  reached: Reached
  add: ReturnType<typeof createParts>['add']
}

/** How long the last use of a credential is remembered, milliseconds. */
const keptUsesMs = 400 * 24 * 3600 * 1000
/** Shortest time between two notes about the use of a reader, milliseconds. Readers may ask each second. */
const readerUseMs = 60_000

/** Where clients reach a node. `listen` sets the real ports, and the URL if none is configured. */
interface Reached {
  publicUrl: string
  mqttPort: number
  httpsPort: number
}

/** Opens all parts except the listeners. */
async function load({ config, log, options, reached, add }: Given) {
  const clock = Date.now
  const limits = limitsOf(config)
  const nodeName = `${hostname()}:${process.pid}`
  const metrics = createMetrics(config, options.others?.metrics)
  const ofHub = createOfHub({ nodeName, metrics, clock, add, others: options.others })
  await ensureDataDirectory(config.dataDir)
  logSettings(config, log)
  const { certificates, paths } = await openCertificates(config, options.certsDir ?? resolve('certs'), log)
  add(certificates)
  metrics.read({ certificateExpiryDays: (set) => set(daysUntil(certificates.notAfter())) })
  const cas = add(await openCaFiles(config, log))

  const onGap = options.restart ?? ((reason) => log.fatal({ err: reason }, 'state is out of date'))
  const dataDirOfHub = options.others?.hub.dataDir ?? config.dataDir
  const opened = await openStoreAtStart(config, nodeName, log, { onGap, redisCa: cas.redis, dataDirOfHub })
  add({
    start: () => opened.join(() => metrics.latency.isDelivering() || calls.isAsking()),
    close: opened.close,
  })
  const { nodes, state: storeState } = opened
  const reading = checkReads(opened.store)
  const store = { ...opened.store, ...reading.reads }
  const calls = createCalls({ store, nodes })
  const checkStore = createStoreCheck({ store, state: storeState })
  const tickets = add(await openTicketKeys({ store, isLeader: nodes.isLeader, clock, log }))
  const { proxyProtocol } = config
  const ask = createAskNode({ certificates, caPath: paths.tlsCa, proxyProtocol })
  const reach = add(watchReach({ nodes, state: storeState, ask, log }))

  const feedRead = createFeedSource({
    source: config.feed,
    intervalMs: limits.feedIntervalMs,
    canaries: config.feedCanaries,
    isSample: isSampleFeed,
    fetchImpl: createFeedFetch(cas.feed),
    store,
    nodes,
    calls,
    log,
    clock,
    stopping: options.stopping,
  })
  const feed = add(await feedRead)
  options.stopping?.throwIfAborted()

  const knownInstitution = (institutionId: string) => feed.current()?.hasInstitution(institutionId) ?? true
  const audit = createAudit(auditPath(config.dataDir), clock, {
    store,
    node: nodeName,
    append: options.others?.appendAudit,
  })
  const accounts = await openAccounts({
    store,
    clock,
    knownInstitution,
    passwords: options.passwords ?? createPasswords(),
    publicUrl: () => reached.publicUrl,
    serviceAccount: config.serviceAccount,
    keyLeadMs: limits.keyLeadMs,
    isPagePublic: config.publicPage,
  })
  const credentials = await createCredentials({
    store,
    clock,
    knownInstitution,
    isCurrent: accounts.isCurrent,
    noteDue(username) {
      const detail = { reason: 'the time set by its rotation has come' }
      return audit.record({ who: 'hub', action: 'credentials.revoke', target: username, detail })
    },
    onStoreFailure: (username, err) =>
      log.error({ err, username }, 'scheduled revocation not in the audit log and the store yet'),
  })
  add({ start: () => void credentials.revokeExpired(), close: credentials.close })
  const bans = await createBans({ store, clock })
  const lastUses = await createLastSeen({
    store,
    family: storeKeys.credentialUse,
    since: new Date(clock() - keptUsesMs).toISOString(),
    onStoreFailure: (err) => log.error({ err }, 'last uses of credentials not stored'),
  })
  add(lastUses)
  credentials.onRevoked(lastUses.forget)
  lastUses.keep((username) => credentials.get(username) !== undefined)
  const noteUse = (username: string, shortestMs = 0) => {
    const { lastAt } = lastUses.get(username) ?? {}
    if (lastAt !== undefined && clock() - Date.parse(lastAt) < shortestMs) return
    lastUses.note(username, { lastAt: new Date(clock()).toISOString() })
  }
  const loginLimit = createLoginLimit(config.loginFailures, store)
  const access = {
    publishes,
    mayPublish,
    maySubscribe,
    mayReceive,
    authenticate(...login: Parameters<typeof credentials.authenticate>) {
      const principal = credentials.authenticate(...login)
      if (principal) noteUse(principal.username)
      return principal
    },
    certified(username: string) {
      const principal = credentials.certified(username)
      if (principal) noteUse(username)
      return principal
    },
    caughtUp: () => caughtUp(store),
    isReader: (username: string) => credentials.get(username)?.role === 'reader',
    isBanned: (username: string, clientId: string, address: string | undefined) =>
      bans.hasUser(username) ||
      bans.hasClient(clientId) ||
      (address !== undefined && bans.hasAddress(address)),
    isValid: ({ username }: Principal) => credentials.isValid(username) && !bans.hasUser(username),
  }

  const fanout = await openFanOut({ store, isLeader: nodes.isLeader, access, limits, clock, log, metrics })
  const traffic = await createTraffic({
    store,
    clock,
    nodes,
    onStoreFailure: (err) => log.error({ err }, 'counters of requests not stored'),
  })
  add(traffic)
  const lifecycle = await createLifecycle({ store, traffic, clock, stage: config.stage })
  const wanted = { incoming: config.maxConnections, outgoing: maxSockets, processes: config.workers }
  const connections = await connectionsWithinOpenFiles(wanted, log)
  const repetitions = await createRepetitions({ store, clock })
  const deliveries = await createDeliveries({
    config,
    ca: cas.push,
    store,
    journal: fanout.journal,
    retained: fanout.retained,
    history: fanout.history,
    nodes,
    calls,
    repetitions,
    version,
    clock,
    log,
    metrics,
    tokenFor: createServiceTokens(accounts.tokens.issueService, () => accounts.keys.current().kid, clock),
    track: lifecycle.trackOf('push'),
    tellContact: createContactMail({
      store,
      server: mailServer(config, cas),
      log,
      publicUrl: () => reached.publicUrl,
    }),
    sockets: socketsWithin(connections.outgoing),
  })
  add({ close: deliveries.close })

  const topics = await createTopics(store)
  const watch = add(
    await openWatch({
      loops: config.loops,
      ownerOf: (livestreamId) => feed.current()?.byId.get(livestreamId)?.institution.id,
      onAppended: fanout.journal.onAppended,
      onEach: fanout.journal.onEach,
      store,
      isLeader: nodes.isLeader,
      isCutOff: reach.isCutOff,
      clock,
      log,
    }),
  )
  const contacts = await createInstitutionContacts({ store, clock })
  const institutionMail = createInstitutionMail({
    store,
    server: mailServer(config, cas),
    publicUrl: () => reached.publicUrl,
    titleOf: (livestreamId) => feed.current()?.byId.get(livestreamId)?.title,
  })
  if (institutionMail) {
    const notifier = createNotifier({
      store,
      confirmed: contacts.confirmed,
      recipient: contacts.recipient,
      noticed: watch.noticed,
      send: institutionMail.tell,
      isLeader: nodes.isLeader,
      clock,
      log,
    })
    watch.onRefused(notifier.refused)
    add(notifier)
  }
  const pipeline = createPipeline({
    watch: watch.pipeline,
    topics,
    repetitions,
    feed: feed.state,
    former: feed.former,
    fanout,
    work: deliveries.planner,
    payloadAt: async (position) => (await fanout.journal.get(position))?.payload,
    dialects: config.dialects,
    nextEventId: createEventIds(clock, fanout.journal.timeOf),
    clock,
    log,
    metrics,
  })
  const broker = await createBroker({
    store,
    nodes,
    calls,
    access,
    fanout,
    clock,
    log,
    metrics,
    inbox: createInbox({ pipeline, maxTopicLevels: config.maxTopicLevels, log, metrics }),
    limits,
    loginLimit,
  })
  add({ start: broker.start, stop: broker.close })
  feed.guardPublishers(async () => {
    const clients = await broker.clients()
    return clients.flatMap(({ username }) => credentials.get(username)?.institutions ?? [])
  })
  metrics.read(
    createReadings({ feed, checkStore, state: storeState, queues: deliveries, broker, watch, clock }),
  )
  credentials.onRevoked((username) => broker.disconnectUser(username))
  bans.onBanned(() => broker.endBanned(access.isBanned))
  accounts.users.onLoggedOut((userId) => void credentials.endOfUser(userId))

  return {
    cas,
    config,
    log,
    clock,
    nodeName,
    metrics,
    ...ofHub,
    certificates,
    tickets,
    opened,
    checkStore,
    reach,
    feed,
    audit,
    bans,
    credentials,
    calls,
    lastUses,
    noteUse,
    loginLimit,
    broker,
    returnable: fanout.returnable,
    accounts,
    connections,
    deliveries,
    topics,
    contacts,
    institutionMail,
    watch,
    pipeline,
    lifecycle,
    paths,
    reading,
  }
}

/** What operators see of the hub as a whole. With several workers, the primary knows it. */
function createOfHub(parts: {
  nodeName: string
  metrics: Metrics
  clock: () => number
  add: Given['add']
  others: OtherWorkers | undefined
}) {
  const { nodeName, metrics, clock, add, others } = parts
  const own = createFigures(nodeName, metrics)
  if (others) {
    others.answer({ metrics: metrics.collect, figures: own })
    return { hub: others.hub, figures: others.figures, trend: others.trend }
  }
  const figures = async () => [await own()]
  const trend = add(startTrend({ figures, clock }))
  const hub = { node: nodeName, uptime: metrics.uptime }
  return { hub, figures, trend: async () => trend.samples() }
}

/** Logs what operators may not expect of their settings. */
function logSettings(config: Config, log: Log): void {
  for (const problem of trialSettings(config))
    log.warn({ problem }, 'stage prod with a setting for trying out')
  if (config.publicPage) log.info('strangers may look at the on-air page')
  if (config.stage === 'prod' && config.metricsToken === undefined) log.info('nobody may read /metrics')
  if (config.proxyProtocol && config.proxyFrom.length === 0)
    log.warn('proxyFrom is unset: whoever reaches the ports may name any client address in a PROXY header')
}

/** Opens the listeners. The other parts, which they use, have started. */
async function listen(
  { config, log, options, reached, add }: Given,
  parts: Awaited<ReturnType<typeof load>>,
) {
  const { metrics, certificates, opened, checkStore, reach, feed, broker, deliveries } = parts
  const { pipeline, topics, accounts, lifecycle } = parts
  const { store, state: storeState } = opened
  const counts = options.others?.counts ?? noOthers
  const bounds = (name: string) =>
    createConnectionBounds({ ...config, room: parts.connections.room, together: { name, counts } })
  const mqttBounds = bounds('mqtt')
  const onAir = createOnAir({
    ...broker,
    returnable: parts.returnable,
    feed: feed.current,
    former: feed.former,
    topics,
    catchUp: opened.catchUp,
    maxStreams: config.maxStreams,
    shared: counts,
    isCutOff: reach.isCutOff,
    clock: parts.clock,
    log,
    metrics,
  })
  const node: NodeParts = {
    ...parts,
    ...accounts,
    storeState,
    catchUp: opened.catchUp,
    config: () => maskedConfig({ ...config, ...parts.paths, ...reached }),
    importFromAedes: createAedesImport({
      ...parts,
      credential: parts.credentials.get,
      maxFilters: config.maxSubscriptions,
      feed: feed.current,
      retained: broker.retained,
      sessions: broker.importedSessions,
      now: parts.clock,
    }),
    lastUsed: (username) => parts.lastUses.get(username)?.lastAt,
    resetUrl: (token) => resetUrl(reached.publicUrl, token),
    silentSince: parts.watch.silentSince,
    status: createStatus({ ...parts, caPath: parts.paths.tlsCa }),
    tail: createTail(broker.history.onDecided),
    eventTrace: createEventTrace({ ...parts, latency: metrics.latency }),
    nowOf: onAir.shows,
  }
  const commands = createCommands(node)
  // A person who only tries out the hub has configured no certificate.
  const isTrial = config.tlsCert === undefined
  // Its token is in the memory of one process.
  const firstOperator =
    isTrial && !options.others ? createFirstOperator({ ...accounts, clock: parts.clock }) : undefined
  const webFiles = add(createWebFiles())
  const httpsAt = { host: config.host, port: config.httpsPort }
  reach.onCutOff(() => {
    broker.sendAway()
    onAir.streams.sendAway()
  })
  const accept: typeof broker.accept = (socket, address, certificate) =>
    reach.isCutOff() ? void socket.destroy() : broker.accept(socket, address, certificate)
  parts.credentials.onRevoked(onAir.streams.checkRights)
  parts.bans.onBanned(({ value }) => onAir.streams.checkRights(value))
  accounts.users.onLoggedOut(onAir.streams.checkRights)
  const bridgeOpened = listening('HUB_HTTPS_PORT', httpsAt, () =>
    startBridge({
      certificates,
      tickets: parts.tickets,
      pipeline,
      topics,
      ...accounts,
      lifecycle,
      version,
      log,
      metrics,
      ...httpsAt,
      history: broker.history,
      audit: parts.audit,
      onAir,
      outgoingBuffer: config.outgoingBuffer,
      bans: parts.bans,
      credentials: {
        ...parts.credentials,
        isValid: (username) => parts.credentials.isValid(username) && !parts.bans.hasUser(username),
      },
      loginLimit: parts.loginLimit,
      noteUse: (username) => parts.noteUse(username, readerUseMs),
      clock: parts.clock,
      store,
      webFiles,
      stage: config.stage,
      project: config.project,
      isPagePublic: config.publicPage,
      firstOperator,
      metricsToken: config.metricsToken,
      operations,
      perform: shareAnswers(createPerform({ commands, log })),
      ownOperations,
      performOwn: createPerformOwn(node, log),
      contacts: parts.contacts,
      receiversOf: (found, user) => ownOf(node, user).events.receivers(found),
      bounds: bounds('https'),
      mqttBounds,
      proxyProtocol: config.proxyProtocol,
      proxyFrom: config.proxyFrom,
      trustedProxies: config.trustedProxies,
      // No HSTS with a development certificate: browsers would refuse all servers on localhost without valid TLS.
      strictTransport: !isTrial,
      rate: createPublishRate(config.publishRate, store, 'https-publish'),
      publicUrl: () => reached.publicUrl,
      mqttPort: () => reached.mqttPort,
      accept,
      maxPacket: config.maxPacket,
      maxConnectPacket: config.maxConnectPacket,
      feed: feed.current,
      silent: parts.watch.silent,
      logIn: createUserLogIn({ store, ...accounts, failures: config.loginFailures }),
      resetMail: createResetMail({
        server: mailServer(config, parts.cas),
        log,
        publicUrl: () => reached.publicUrl,
      }),
      subscriptions: deliveries.subscriptions,
      deliveries,
      checkUrl: (url) =>
        checkWebhookUrl(url, { allowPrivate: config.pushAllowPrivate, own: reached.publicUrl }),
      health: createHealth({ checkStore, state: storeState, feed }),
      readiness: createReadiness({ checkStore, isShared: opened.nodes.isShared, isCutOff: reach.isCutOff }),
      securityContact: config.securityContact,
    }),
  )
  const bridge = add(await bridgeOpened)
  reached.httpsPort = bridge.port
  reached.publicUrl ||= `https://localhost:${bridge.port}`
  // Deliveries start only now, because they name the URL. They stop before the bridge and the broker do, which takes as
  // long as slow receivers.
  await deliveries.start()
  add({ stop: deliveries.stop })

  const { dataDir } = config
  const backup = createBackupCommands({
    ...opened,
    ...parts,
    dataDir,
    run: opened.nodes.self,
    hasWorkers: config.workers > 1,
    restart: options.restart,
  })
  const path = socketPathIn(dataDir)
  const admin = add(await startAdminSocket({ path, commands: { ...commands, ...backup }, log }))
  const mqttAt = { host: config.host, port: config.mqttPort }
  const mqttOpened = listening('HUB_MQTT_PORT', mqttAt, () =>
    listenMqtt({
      ...mqttAt,
      certificates,
      tickets: parts.tickets,
      bans: parts.bans,
      clientCa: parts.cas.client,
      bounds: mqttBounds,
      proxyProtocol: config.proxyProtocol,
      proxyFrom: config.proxyFrom,
      accept,
      clock: parts.clock,
      log,
      metrics,
    }),
  )
  const mqtt = add(await mqttOpened)
  // What stops next waits for all answers that have begun.
  add({ stop: broker.endTraces })
  reached.mqttPort = mqtt.port

  return {
    mqttPort: mqtt.port,
    httpsPort: bridge.port,
    adminSocket: admin.path,
    /** Path of the CA certificate that clients need, PEM. Undefined: clients trust the CA already. */
    caPath: parts.paths.tlsCa,
    /** Token of the link for the first operator. Undefined: an operator exists, or a certificate is configured. */
    firstOperatorToken: firstOperator?.token(),
    /** A livestream of the feed, for the examples in the welcome text. */
    livestream: feed.current()?.sample,
  }
}

function mailServer({ smtp }: Config, { smtp: ca }: CaFiles) {
  return smtp && { ...smtp, ca }
}
