import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type Agent, request } from 'node:https'
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
export async function send(
  { httpsPort, ca }: HttpsDoor,
  path: string,
  body: object,
  { token, agent }: { token?: string | undefined; agent?: Agent } = {},
) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
  const to = {
    host: 'localhost',
    port: httpsPort,
    path,
    method: 'POST',
    ca,
    headers,
    ...(agent && { agent }),
  }
  const sent = request(to).end(JSON.stringify(body))
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode ?? 500, headers: answer.headers, text: await text(answer) }
}

async function post(
  door: HttpsDoor,
  path: string,
  body: object,
  token?: string,
): Promise<Record<string, unknown>> {
  for (;;) {
    const { status, headers, text } = await send(door, path, body, { token })
    if (status < 300) return JSON.parse(text)
    if (status !== 429) throw new Error(`${path}: ${status} ${text}`)
    await delay(Number(headers['retry-after']) * 1_000)
  }
}
