import type { Config } from '../config/config.ts'
import { readCa } from '../config/expected.ts'
import { type CreateDriver, loadDriver } from './plugins/driver.ts'
import { attemptMs } from './plugins/plugins.ts'
import type { PluginTarget } from './plugins/targets.ts'
import { createWebhookDriver } from './plugins/webhook-driver.ts'
import { createWebhooks } from './webhook/webhook.ts'

/** The two HTTPS clients: one posts to webhooks, one to plugin targets. */
export async function createClients(parts: {
  config: Pick<Config, 'pushCa' | 'pushAllowPrivate' | 'serviceAccount'>
  /** Maximum number of unused connections that each client keeps open for its next messages. */
  maxKept: number
  /** Release of the hub, which receivers see in the `User-Agent` header. */
  version: string
  tokenFor: (audience: string, account: string) => Promise<string>
}) {
  const { config, maxKept, version, tokenFor } = parts
  const { pushCa, serviceAccount } = config
  const ca = pushCa === undefined ? {} : { ca: await readCa('HUB_PUSH_CA', pushCa) }
  const client = { ...ca, maxKept, userAgent: `now-playing-hub/${version}` }
  const webhooks = createWebhooks({ ...client, allowPrivate: config.pushAllowPrivate })
  // The operator chooses these URLs, and may run the services in-house.
  const targets = createWebhooks({ ...client, allowPrivate: true })

  return {
    /** Posts to a webhook. */
    post: webhooks.post,

    /** Makes the driver of a plugin target. */
    async driverOf({ driver }: PluginTarget): Promise<CreateDriver> {
      if (driver !== undefined) return loadDriver(driver)
      const toTarget = { deadlineMs: attemptMs, post: targets.post }
      return ({ url = '' }) =>
        createWebhookDriver({ ...toTarget, url, tokenFor: (audience) => tokenFor(audience, serviceAccount) })
    },

    close(): void {
      webhooks.close()
      targets.close()
    },
  }
}
