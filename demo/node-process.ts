import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { loadConfig } from '../config/config.ts'
import { startHub } from '../hub.ts'
import { createLog } from '../telemetry/log.ts'
import type { NodeMessage } from './node.ts'

/*
 * The node has its own process: clients on the same event loop would distort measured times. When the parent process
 * ends, this process removes the node's directory and ends, too.
 */

const [, , home = ''] = process.argv
const gone = new Promise<void>((resolve) => process.once('disconnect', () => resolve()))
// The terminal also signals this process, but the parent process stops the node.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

const variables = { HUB_DATA_DIR: join(home, 'data'), HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0' }
const loaded = loadConfig(variables, home)
if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
try {
  const hub = await startHub(loaded.config, createLog('error'), { certsDir: join(home, 'certs') })
  const { mqttPort, httpsPort, adminSocket, caPath = '' } = hub
  tell({ mqttPort, httpsPort, adminSocket, caPath })
  await gone
  await hub.close()
} catch (error) {
  tell({ problem: error instanceof Error ? error.message : String(error) })
  await gone
} finally {
  await rm(home, { recursive: true, force: true, maxRetries: 3 })
}
process.exit()

function tell(message: NodeMessage): void {
  if (process.connected) process.send?.(message)
}
