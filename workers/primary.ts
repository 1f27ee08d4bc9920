import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { appendToAudit, auditPath } from '../admin/audit.ts'
import { waitingName } from '../admin/backup/importing.ts'
import { checkSocketPath, socketPathIn } from '../admin/socket.ts'
import { ensureDataDirectory } from '../config/expected.ts'
import type { Config } from '../config/settings.ts'
import { sync } from '../config/sync.ts'
import { closeUnaccepted } from '../listener/node-internals.ts'
import { inTimeOr } from '../store/deadline.ts'
import { createLocks } from '../store/lock.ts'
import { createCollection } from '../telemetry/collected.ts'
import type { Log } from '../telemetry/log.ts'
import { startTrend } from '../telemetry/trend.ts'
import { openAdminDoor } from './admin-door.ts'
import { createCounts } from './counts.ts'
import { createLink, type Link } from './link.ts'
import type { ToPrimary, ToWorker } from './questions.ts'
import { aliveMs, workerMark } from './worker.ts'

/** Pauses before a worker starts again, milliseconds: the first one, and the longest. */
const pausesMs = { first: 250, longest: 5_000 }
/** A worker that ran for so long starts again after the first pause, milliseconds. */
const steadyMs = 60_000
/**
 * A worker is killed after so many signs of life that did not come, one a second: 20 s if it accepts clients, a minute if
 * it starts. Other nodes have taken it for gone before that. The limit is not a time: a primary that stands still, with
 * its machine or alone, counts nothing meanwhile.
 */
const patience = { ready: 20, starting: 60 }
/** Longest wait for the metrics and figures of a worker, milliseconds. */
const answerMs = 1_000

interface Running {
  worker: Worker
  link: Link<ToWorker>
  /** Accepts clients. */
  isReady: boolean
  /** How many signs of life have not come since the last one. */
  missed: number
}

/**
 * Runs the workers of a hub (`HUB_WORKERS`), each a node of the one Redis, on the same ports. Starts one that ends again.
 * Resolves with the exit code when `stopped` has resolved and all workers have ended. Rejects if the hub cannot start.
 */
export async function runWorkers(of: {
  config: Config
  log: Log
  stopped: Promise<NodeJS.Signals>
}): Promise<number> {
  const { log, stopped } = of
  const config = { ...of.config, ...(await portsOf(of.config)) }
  const { dataDir, mqttPort, httpsPort } = config
  await ensureDataDirectory(dataDir)
  const adminSocket = socketPathIn(dataDir)
  await checkSocketPath(adminSocket)

  const running = new Map<number, Running>()
  const counts = createCounts((number, changes) => running.get(number)?.link.tell('count', changes))
  const collection = createCollection()
  const trend = startTrend({ figures: () => allFigures(), clock: Date.now })
  const auditing = createLocks()
  let isStopping = false
  let exitCode = 0
  void stopped.then(() => {
    isStopping = true
    for (const { worker } of running.values()) worker.process.kill('SIGTERM')
  })

  // The order in which the primary accepts: each worker gets as many connections.
  cluster.schedulingPolicy = cluster.SCHED_RR
  const numbers = Array.from({ length: config.workers }, (_, index) => index + 1)
  const [first = 1, ...others] = numbers
  const watching = setInterval(killHung, aliveMs)
  await handOverImport(dataDir, directoryOf(first))
  // The first one makes what the others find: the development certificate, the form of the store, what it imports.
  const hasFailed =
    (await started(first)) === 'failed' || (await Promise.all(others.map(started))).includes('failed')
  if (isStopping) return ended()
  // The log says why. The others end with this process.
  if (hasFailed) return 1
  const door = await openAdminDoor(adminSocket, () =>
    [...running]
      .filter(([, { isReady }]) => isReady)
      .map(([number, { link }]) => link.ask('answer').then(() => socketPathIn(directoryOf(number)))),
  )
  log.info({ mqttPort, httpsPort, adminSocket }, 'hub ready')
  await stopped
  clearInterval(watching)
  await ended()
  await door.close()
  return exitCode

  /** Starts a worker for the first time. Resolves when it accepts clients, has failed, or the hub is to stop. */
  async function started(number: number): Promise<'failed' | undefined> {
    if (isStopping) return undefined
    const { ready, exited } = start(number)
    const code = await Promise.race([ready, exited])
    if (isStopping) return undefined
    if (code === null) throw new Error(`a signal ended worker ${number}`)
    if (code !== undefined) return 'failed'
    void keep(number, exited)
    return undefined
  }

  /** Starts a worker again whenever it ends. */
  async function keep(number: number, first: Promise<number | null>): Promise<void> {
    let exited = first
    let pauseMs = pausesMs.first
    for (;;) {
      const began = performance.now()
      const code = await exited
      if (isStopping) return
      if (performance.now() - began > steadyMs) pauseMs = pausesMs.first
      log.error({ worker: number, code, retryInMs: pauseMs }, 'a worker ended, and starts again')
      await Promise.race([delay(pauseMs), stopped])
      if (isStopping) return
      pauseMs = Math.min(2 * pauseMs, pausesMs.longest)
      try {
        const next = start(number)
        exited = next.exited
        void next.ready.then(() => log.info({ worker: number }, 'the worker accepts clients again'))
      } catch (err) {
        log.error({ err }, 'a worker could not be started')
      }
    }
  }

  /** Kills workers that hang. `keep` starts them again. */
  function killHung(): void {
    for (const [number, current] of running) {
      if (++current.missed !== (current.isReady ? patience.ready : patience.starting)) continue
      log.error({ worker: number, pid: current.worker.process.pid }, 'a worker hangs, and is killed')
      current.worker.process.kill('SIGKILL')
    }
  }

  function start(number: number): { ready: Promise<void>; exited: Promise<number | null> } {
    const worker = cluster.fork({ [workerMark]: String(number) })
    worker.on('error', (err) => {
      const hasStarted = worker.process.pid !== undefined
      log.error({ err }, hasStarted ? 'a worker does not take messages' : 'a worker could not be started')
    })
    closeUnaccepted(worker.process)
    let isReady = () => {}
    const ready = new Promise<void>((resolve) => {
      isReady = resolve
    })
    const link = createLink<ToWorker>((text) => worker.isConnected() && worker.send(text), {
      begin: () => ({
        config: { ...config, dataDir: directoryOf(number) },
        counts: counts.begin(number),
        node: `${hostname()}:${process.pid}`,
        dataDir,
        uptime: process.uptime(),
      }),
      ready() {
        current.isReady = true
        current.missed = 0
        isReady()
      },
      alive() {
        current.missed = 0
      },
      count: (changes) => counts.add(number, changes),
      appendAudit: (line) => auditing.hold('', () => appendToAudit(auditPath(dataDir), line)),
      metrics: allMetrics,
      figures: () => allFigures(),
      trend: trend.samples,
    } satisfies ToPrimary)
    const current: Running = { worker, link, isReady: false, missed: 0 }
    running.set(number, current)
    worker.on('message', link.receive)
    const exited = exitOf(worker).then((code) => {
      running.delete(number)
      counts.end(number)
      link.end()
      // Null: the signal came before the worker could listen to it.
      if (isStopping && (code ?? 0) !== 0) exitCode = 1
      return code
    })
    return { ready, exited }
  }

  async function allMetrics() {
    await ofEach(async (link, number) => collection.take(number, await link.ask('metrics')))
    return collection.all()
  }

  async function allFigures() {
    return ofEach((link) => link.ask('figures'))
  }

  /** What the workers answer in time. */
  async function ofEach<T>(ask: (link: Link<ToWorker>, number: number) => Promise<T>): Promise<T[]> {
    const answers = [...running].map(([number, { link }]) =>
      inTimeOr(
        ask(link, number).then((answer) => [answer], none),
        answerMs,
        [],
      ),
    )
    return (await Promise.all(answers)).flat()
  }

  /** Resolves when all workers have ended. */
  async function ended(): Promise<number> {
    await Promise.all([...running.values()].map(({ worker }) => worker.isDead() || exitOf(worker)))
    return exitCode
  }

  function directoryOf(number: number): string {
    return join(dataDir, `worker-${number}`)
  }
}

/** The exit code; null: a signal ended the worker. Negative: it could not be started, and there is no event `exit`. */
function exitOf(worker: Worker): Promise<number | null> {
  // Not by the function `once`, which rejects where a message cannot be sent.
  return new Promise((resolve) => {
    worker.once('exit', resolve)
    worker.process.once('close', resolve)
  })
}

function none(): [] {
  return []
}

/** Hands an export that waits in the data directory to the first worker, which takes it in before the others start. */
async function handOverImport(dataDir: string, first: string): Promise<void> {
  const path = join(dataDir, waitingName)
  if (!existsSync(path)) return
  await ensureDataDirectory(first)
  await rename(path, join(first, waitingName))
  await sync(first)
}

/** The ports for all workers. A free one where the setting is 0: each worker would get another one. */
async function portsOf({ host, mqttPort, httpsPort }: Config) {
  const servers = [mqttPort, httpsPort].map((port) =>
    port === 0 ? createServer().listen(0, host) : undefined,
  )
  const ports = await Promise.all(
    servers.map(async (server) => {
      if (!server) return undefined
      await once(server, 'listening')
      const address = server.address()
      return typeof address === 'object' ? address?.port : undefined
    }),
  )
  await Promise.all(servers.map((server) => server && once(server.close(), 'close')))
  return { mqttPort: ports[0] ?? mqttPort, httpsPort: ports[1] ?? httpsPort }
}
