#!/usr/bin/env node
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { welcomeText } from './cli/welcome.ts'
import { loadConfig } from './config/config.ts'
import { version } from './config/version.ts'
import { type Hub, startHub } from './hub.ts'
import { createLog } from './telemetry/log.ts'
import { reasonOf } from './telemetry/reason.ts'

/** Longest time from SIGTERM to exit, milliseconds (design.md §3). */
const shutdownMs = 9_500
/** Longest pause between two tries to start the node again, milliseconds. */
const longestWaitMs = 5_000

await main(process.argv.slice(2))

async function main(argv: readonly string[]): Promise<void> {
  // With arguments, the program prints an answer and starts no node.
  if (argv.length > 0) process.exit(answer(argv))
  const loaded = loadConfig(process.env, process.cwd())
  if ('problems' in loaded) {
    for (const problem of loaded.problems) process.stderr.write(`${problem}\n`)
    process.exit(1)
  }
  const { config } = loaded
  // Writing to standard error fails if its disk is full or its reader has closed it. The node must go on all the same.
  process.stderr.on('error', () => {})
  const log = createLog(config.logLevel)
  let stopping = false
  let running = start()
  let hub: Hub
  try {
    hub = (await running).hub
  } catch (error) {
    process.stderr.write(`the hub cannot start: ${reasonOf(error)}\n`)
    process.exit(1)
  }
  // Handle signals before `hub ready` is logged: a reader of that line may stop the node at once.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return
      stopping = true
      log.info({ signal }, 'stopping')
      setTimeout(() => {
        log.error('not stopped in time')
        process.exit(1)
      }, shutdownMs).unref()
      const stopped = running.then(({ hub }) => hub.close())
      stopped.then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ err: error }, 'stopped with an error')
          process.exit(1)
        },
      )
    })
  }

  const { mqttPort, httpsPort, adminSocket } = hub
  log.info({ mqttPort, httpsPort, adminSocket }, 'hub ready')
  // Welcome a person who tries out the hub. Nodes with a configured certificate or a load balancer are in real use.
  if (!config.tlsCert && !config.tlsCa && !config.proxyProtocol && hub.caPath !== undefined) {
    const { caPath, livestream, firstOperatorToken } = hub
    process.stderr.write(
      welcomeText({
        host: config.host,
        mqttPort,
        httpsPort,
        adminSocket,
        defaultSocket: resolve('data/admin.sock'),
        caPath,
        livestream,
        firstOperatorToken,
      }),
    )
  }

  while (!stopping) {
    const { hub, over } = await running
    const reason = await over
    if (stopping) return
    if (reason === 'import') log.info('the node starts again, to take in an export')
    else log.error({ err: reason }, 'the node lost track of the others, and starts again')
    running = hub.close().then(startAgain)
    running.catch((error: unknown) => {
      log.fatal({ err: error }, 'the node cannot be closed')
      process.exit(1)
    })
  }

  /**
   * Starts the node. `over` resolves when the caller must close the node and start it again: with an error if its state
   * in memory no longer agrees with that of the other nodes, with `import` if an export waits to be imported.
   */
  async function start(settings = config): Promise<{ hub: Hub; over: Promise<Error | 'import'> }> {
    let end = (_reason: Error | 'import') => {}
    const over = new Promise<Error | 'import'>((resolve) => {
      end = resolve
    })
    return { hub: await startHub(settings, log, { onGap: end, onImport: () => end('import') }), over }
  }

  /** Tries to start the node until that succeeds. This may take long, for example while Redis is not reachable. */
  async function startAgain(): ReturnType<typeof start> {
    for (let waitMs = 250; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
      // No node is open here, so there is nothing to close before the exit.
      if (stopping) process.exit(0)
      try {
        // Use the ports of the first start, because clients reconnect to them.
        const started = await start({ ...config, mqttPort, httpsPort })
        log.info({ mqttPort, httpsPort }, 'hub ready')
        return started
      } catch (err) {
        log.error({ err, retryInMs: waitMs }, 'the node cannot start again yet')
        await delay(waitMs)
      }
    }
  }
}

/** Prints the answer to the arguments, and returns the exit code. A node itself takes no arguments. */
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
