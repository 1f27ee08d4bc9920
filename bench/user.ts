import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchNode } from './node.ts'

/** Adds a user of an institution and logs the user in. Returns the token. */
export async function logIn(
  node: HttpsDoor & Pick<BenchNode, 'ask'>,
  institution: string,
  permissions: readonly string[] = [],
): Promise<string> {
  const [email, password] = [`${institution.split(':').pop()}@radio.example`, 'correct horse battery']
  const added = { email, institution, permissions }
  const { resetToken } = await node.ask<{ resetToken: string }>('users.add', added)
  await post(node, '/auth/reset', { token: resetToken, password })
  const { token } = await post(node, '/auth/login', { email, password })
  return String(token)
}

/** Subscribes a webhook to a livestream. After a 429, waits for `retry-after` and asks again. */
export async function subscribeWebhook(
  door: HttpsDoor,
  token: string,
  { url, topic }: { url: string; topic: string },
): Promise<void> {
  const wanted = { type: 'PUBSUB', method: 'PUSH', url, contact: 'bench@radio.example', topic }
  await post(door, '/subscriptions', wanted, token)
}

export type HttpsDoor = Pick<BenchNode, 'httpsPort'> & { ca: string | Buffer }

/** Posts JSON to a node. */
async function post(
  { httpsPort, ca }: HttpsDoor,
  path: string,
  body: object,
  token?: string,
): Promise<Record<string, unknown>> {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
  for (;;) {
    const sent = request({ host: 'localhost', port: httpsPort, path, method: 'POST', ca, headers })
    const [answer] = (await once(sent.end(JSON.stringify(body)), 'response')) as [IncomingMessage]
    const { statusCode = 500 } = answer
    const said = await text(answer)
    if (statusCode < 300) return JSON.parse(said)
    if (statusCode !== 429) throw new Error(`${path}: ${statusCode} ${said}`)
    await delay(Number(answer.headers['retry-after']) * 1_000)
  }
}
