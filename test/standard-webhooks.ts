import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'

/** What a library for Standard Webhooks verifies pushes with. */
export interface WebhookLibrary {
  Webhook: new (secret: string) => { verify(body: string | Buffer, headers: Record<string, string>): unknown }
}

/** The libraries that people verify pushes with, by name. */
export const webhookLibraries: [name: string, WebhookLibrary][] = [
  ['standardwebhooks', { Webhook: StandardWebhook }],
  ['svix', { Webhook: SvixWebhook }],
]
