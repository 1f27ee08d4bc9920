#!/usr/bin/env node
import { rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import type { Config } from './config/settings.ts'
import { version } from './config/version.ts'
import type { Hub } from './hub.ts'
import type { Log } from './telemetry/log.ts'
import { reasonOf } from './telemetry/reason.ts'

/** Longest time from SIGTERM to exit, milliseconds (design.md §3). */
const shutdownMs = 9_500
/** Longest pause between two tries to start the node again, milliseconds. */
const longestWaitMs = 5_000

/** Aborts when the process is asked to stop. */
const stop = new AbortController()
/**
 * Resolves with the signal that asks the process to stop. The handlers come before the slow imports: without a handler,
 * the first process of a container ignores a signal.
 */
const stopped = new Promise<NodeJS.Signals>((resolve) => {
  // SIGHUP: the terminal was closed.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      stop.abort()
      resolve(signal)
    })
  }
})

await main(process.argv.slice(2))

async function main(argv: readonly string[]): Promise<void> {
  // With arguments, the program prints an answer and starts no node.
  if (argv.length > 0) process.exit(answer(argv))
  const { connectToPrimary, isWorker } = await import('./workers/worker.ts')
  const worker = isWorker() ? await connectToPrimary() : undefined
  const config = worker?.config ?? (await readConfig())
  // Writing to standard error fails if the disk is full or the reader has gone. The node must go on.
  process.stderr.on('error', () => {})
  const { createLog } = await import('./telemetry/log.ts')
  const log = createLog(config.logLevel)
  void stopped.then((signal) => {
    if (!worker) log.info({ signal }, 'stopping')
    setTimeout(() => {
      log.error('not stopped in time')
      process.exit(1)
    }, shutdownMs).unref()
  })

  if (!worker && config.workers > 1) {
    const { runWorkers } = await import('./workers/primary.ts')
    process.exit(await runWorkers({ config, log, stopped }).catch(cannotStart))
  }
  const { startHub } = await import('./hub.ts')
  // Node.js 24 loads modules in one turn of the event loop: a signal that came meanwhile is heard in the next one.
  await setImmediate()
  let node = await start().catch(cannotStart)
  const { mqttPort, httpsPort } = node.hub
  const linkFile = join(config.dataDir, 'first-operator')
  if (!stop.signal.aborted && !worker) await welcome(config, node.hub, { linkFile, log })

  while (!stop.signal.aborted) {
    const reason = await Promise.race([node.over, stopped])
    if (stop.signal.aborted) break
    if (reason === 'import') log.info('the node starts again, to take in an export')
    else log.error({ err: reason }, 'the node lost track of the others, and starts again')
    await node.hub.close().catch((error: unknown) => {
      log.fatal({ err: error }, 'the node cannot be closed')
      process.exit(1)
    })
    node = await startAgain()
  }
  await node.hub.close().catch((error: unknown) => {
    log.error({ err: error }, 'stopped with an error')
    process.exit(1)
  })
  await rm(linkFile, { force: true }).catch(() => undefined)
  process.exit(0)

  /** Starts the node. `over` resolves with the reason to start it again (`HubOptions.restart`). */
  async function start(settings = config): Promise<{ hub: Hub; over: Promise<Error | 'import'> }> {
    let restart = (_reason: Error | 'import') => {}
    const over = new Promise<Error | 'import'>((resolve) => {
      restart = resolve
    })
    const others = worker?.siblings
    const hub = await startHub(settings, log, { stopping: stop.signal, restart, ...(others && { others }) })
    const { mqttPort, httpsPort, adminSocket } = hub
    // The primary of the workers says so once for all.
    if (worker) await worker.ready()
    else if (!stop.signal.aborted) log.info({ mqttPort, httpsPort, adminSocket }, 'hub ready')
    return { hub, over }
  }

  /** Tries until the node starts. This may take long, for example while Redis is not reachable. */
  async function startAgain(): ReturnType<typeof start> {
    for (let waitMs = 250; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
      try {
        // Use the ports of the first start, because clients reconnect to them.
        return await start({ ...config, mqttPort, httpsPort })
      } catch (err) {
        endIfStopped()
        log.error({ err, retryInMs: waitMs }, 'the node cannot start again yet')
        await Promise.race([delay(waitMs), stopped])
      }
    }
  }
}

/** Reads the configuration. Ends the process if it has problems. */
async function readConfig(): Promise<Config> {
  const { loadConfig } = await import('./config/config.ts')
  const loaded = loadConfig(process.env, process.cwd())
  if ('config' in loaded) return loaded.config
  for (const problem of loaded.problems) process.stderr.write(`${problem}\n`)
  process.exit(1)
}

function cannotStart(error: unknown): never {
  endIfStopped()
  process.stderr.write(`the hub cannot start: ${reasonOf(error)}\n`)
  process.exit(1)
}

/** Ends the process if it was asked to stop. A failed start has left nothing open. */
function endIfStopped(): void {
  if (stop.signal.aborted) process.exit(0)
}

/**
 * Prints commands for a first try of the hub. Prints nothing if the node is in real use. A configured certificate or a
 * load balancer is a sign of real use.
 */
async function welcome(config: Config, hub: Hub, of: { linkFile: string; log: Log }): Promise<void> {
  const { mqttPort, httpsPort, adminSocket, caPath, livestream, firstOperatorToken } = hub
  const { linkFile, log } = of
  if (config.tlsCert || config.tlsCa || config.proxyProtocol || caPath === undefined) return
  const { welcomeText, firstOperatorLink } = await import('./cli/welcome.ts')
  // What is not a terminal is kept: a file, the journal of the system, a collector of logs.
  const isKept = firstOperatorToken !== undefined && !process.stderr.isTTY
  const link = isKept ? firstOperatorLink({ host: config.host, httpsPort }, firstOperatorToken) : undefined
  const isWritten = link !== undefined && (await writeLink(linkFile, link, log))
  process.stderr.write(
    welcomeText({
      host: config.host,
      mqttPort,
      httpsPort,
      adminSocket,
      defaultSocket: resolve('data/admin.sock'),
      caPath,
      livestream,
      ...(isWritten && { linkFile }),
      ...(!isKept && { firstOperatorToken }),
    }),
  )
}

/** Writes the link for the first operator into a file. False: the log says why not, and the node goes on. */
async function writeLink(file: string, link: string, log: Log): Promise<boolean> {
  try {
    await rm(file, { force: true })
    await writeFile(file, `${link}\n`, { flag: 'wx', mode: 0o600 })
    log.info({ file }, 'the link for the first operator is in a file')
    return true
  } catch (err) {
    log.error({ err, file }, 'the link for the first operator cannot be written')
    return false
  }
}

/** Prints the answer to the arguments, and returns the exit code. */
function answer(argv: readonly string[]): number {
  const strange = argv.find((argument) => !['--help', '-h', '--version'].includes(argument))
  if (strange !== undefined) {
    const hint = 'add --help to see how a node is started'
    process.stderr.write(`hub: unknown argument ${JSON.stringify(strange.slice(0, 100))}: ${hint}\n`)
    return 2
  }
  process.stdout.write(argv.includes('--version') ? `${version}\n` : helpText())
  return 0
}

function helpText(): string {
  return `Usage: hub [--help | --version]

Starts a node of the now-playing hub, which runs until SIGTERM or Ctrl-C.
Its settings are environment variables (HUB_HOST, HUB_MQTT_PORT, HUB_HTTPS_PORT, HUB_DATA_DIR, …),
or in the JSON file that HUB_CONFIG names. All of them: docs/operators.md, Configuration.
hubctl operates a running node: hubctl --help
`
}
