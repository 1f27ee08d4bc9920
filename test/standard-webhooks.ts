/** What a library for Standard Webhooks exports. */
export interface WebhookLibrary {
  Webhook: new (secret: string) => { verify(body: string | Buffer, headers: object): unknown }
}

/** The libraries that people verify pushes with, by name. Each has a type of its own for the same thing. */
export const webhookLibraries: [name: string, WebhookLibrary][] = []
for (const name of ['standardwebhooks', 'svix']) webhookLibraries.push([name, await import(name)])
