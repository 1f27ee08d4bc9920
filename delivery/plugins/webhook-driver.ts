import type { Post } from '../webhook/webhook.ts'
import type { HubDriver } from './driver.ts'
import { failedBy } from './outcome.ts'

/** Posts items to a URL that the operator has configured. Each request has a token of the hub. */
export function createWebhookDriver(parts: {
  url: string
  deadlineMs: number
  post: Post
  tokenFor: (audience: string) => Promise<string>
}): HubDriver {
  const { url, deadlineMs, post, tokenFor } = parts
  return {
    async deliver(item, { messageId, signal }) {
      const body = Buffer.from(JSON.stringify(item))
      const headers = { 'hub-message-id': messageId }
      return tokenFor(url).then((token) => post({ url, body, headers, token, deadlineMs, signal }), failedBy)
    },
  }
}
