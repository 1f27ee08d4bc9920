#!/usr/bin/env node
import { resolve } from 'node:path'
import { loadConfig } from './config/config.ts'
import { type Hub, startHub } from './hub.ts'
import { createLog } from './telemetry/log.ts'
import { welcomeText } from './welcome.ts'

/** Longest time from SIGTERM to exit, milliseconds (design.md §3). */
const shutdownMs = 9_500

await main()

async function main(): Promise<void> {
  const loaded = loadConfig(process.env, process.cwd())
  if ('problems' in loaded) {
    for (const problem of loaded.problems) process.stderr.write(`${problem}\n`)
    process.exit(1)
  }
  const { config } = loaded
  const log = createLog(config.logLevel)
  let stopping = false
  const start = () => startHub(config, log, { onGap })
  let current: Promise<Hub> = start()
  let hub: Hub
  try {
    hub = await current
  } catch (error) {
    process.stderr.write(`the hub cannot start: ${reasonOf(error)}\n`)
    process.exit(1)
  }
  // Before anybody is told that it is ready: who reads that may stop it at once.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return
      stopping = true
      log.info({ signal }, 'stopping')
      setTimeout(() => {
        log.error('not stopped in time')
        process.exit(1)
      }, shutdownMs).unref()
      const stopped = current.then((running) => running.close())
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
  // For whoever tries it out; a node with certificates of its own, or behind a load balancer, is past that.
  if (config.tlsCert === undefined && !config.proxyProtocol && hub.caPath !== undefined) {
    const { caPath, livestream } = hub
    process.stderr.write(
      welcomeText({
        host: config.host,
        mqttPort,
        httpsPort,
        adminSocket,
        defaultSocket: resolve('data/admin.sock'),
        caPath,
        livestream,
      }),
    )
  }

  /**
   * Rare enough to begin anew: what is loaded no longer agrees with what the other nodes have done. One after the
   * other, because it may lose track again before it has started.
   */
  function onGap(reason: Error): void {
    log.error({ err: reason }, 'the node lost track of the others, and starts again')
    current = current.then(async (running) => {
      if (stopping) return running
      await running.close()
      const next = await start()
      log.info({ mqttPort: next.mqttPort, httpsPort: next.httpsPort }, 'hub ready')
      return next
    })
    current.catch((error: unknown) => {
      log.fatal({ err: error }, 'the node cannot start again')
      process.exit(1)
    })
  }
}

/** One line: the message, and those of its causes. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause === undefined ? '' : `: ${reasonOf(error.cause)}`
  return `${error.message}${cause}`.replaceAll('\n', ' ')
}
