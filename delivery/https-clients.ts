import type { CurrentCa } from '../config/ca-files.ts'
import type { Config } from '../config/settings.ts'
import type { Log } from '../telemetry/log.ts'
import type { DriverEnd } from '../telemetry/metrics.ts'
import { attemptMs, type HubDriver } from './plugins/driver.ts'
import { createDriverProcess, type DriverProcess } from './plugins/driver-process.ts'
import type { PluginTarget } from './plugins/targets.ts'
import { createWebhookDriver } from './plugins/webhook-driver.ts'
import { createWebhooks } from './webhook/webhook.ts'

/** The two HTTPS clients: one posts to webhooks, one to plugin targets. */
export function createHttpsClients(parts: {
  config: Pick<Config, 'pushAllowPrivate' | 'serviceAccount'>
  /** A CA that both trust besides the usual ones. */
  ca: CurrentCa | undefined
  /** Maximum number of unused connections that each client keeps open for its next messages. */
  maxKept: number
  /** Release of the hub, which receivers see in the `User-Agent` header. */
  version: string
  tokenFor: (audience: string, account: string) => Promise<string>
  /** Called when the process of a driver has ended. */
  driverEnded: (reason: DriverEnd) => void
}) {
  const { config, ca, maxKept, version, tokenFor, driverEnded } = parts
  const { serviceAccount } = config
  const client = { ca, maxKept, userAgent: `now-playing-hub/${version}` }
  const webhooks = createWebhooks({ ...client, allowPrivate: config.pushAllowPrivate })
  // The operator chooses these URLs, and may run the services in-house.
  const targets = createWebhooks({ ...client, allowPrivate: true })

  return {
    /** Posts to a webhook. */
    post: webhooks.post,

    /** Makes the driver of a plugin target. */
    driverOf(target: PluginTarget, log: Log): HubDriver | DriverProcess {
      const { driver, url = '' } = target
      if (driver !== undefined) return createDriverProcess({ file: driver, target, log, ended: driverEnded })
      const toTarget = { url, deadlineMs: attemptMs, post: targets.post }
      return createWebhookDriver({ ...toTarget, tokenFor: (audience) => tokenFor(audience, serviceAccount) })
    },

    close(): void {
      webhooks.close()
      targets.close()
    },
  }
}
