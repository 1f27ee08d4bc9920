import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import type { Test } from 'tap'
import type { TestHub } from '../start-hub.ts'
import { type Json, readDescription } from './description.ts'

export type Api = Awaited<ReturnType<typeof openApi>>

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  json: Json
}

export const password = 'correct horse battery'

interface Sent {
  body?: unknown
  token?: string | undefined
  headers?: Record<string, string>
  /** Loopback address from which the request is sent. */
  from?: string
}

/** The HTTPS API of a node. `call` checks every answer against the node's own `/openapi.json`. */
export async function openApi(t: Test, hub: Pick<TestHub, 'httpsPort' | 'caPath'>) {
  const send = openClient(t, hub)
  const description = readDescription((await send('GET', '/openapi.json')).json)

  return {
    description,
    /** Sends one request and does not check the answer, for pages. */
    raw: send,

    async call(method: string, path: string, how: Sent = {}): Promise<Answer> {
      const answer = await send(method, path, how)
      const problem = description.problemOf({
        method,
        path,
        status: answer.status,
        type: String(answer.headers['content-type']),
        body: answer.json,
      })
      if (problem !== undefined) {
        t.fail(`${method} ${path} answered ${answer.status} ${answer.text.slice(0, 300)}: ${problem}`)
      }
      return answer
    },
  }
}

/** Sends requests, and checks no answers. Strings and buffers are sent unchanged, any other `body` as JSON. */
export function openClient(t: Test, hub: Pick<TestHub, 'httpsPort' | 'caPath'>) {
  const agent = new Agent({ keepAlive: true, ca: readFileSync(hub.caPath), maxSockets: 16 })
  t.teardown(() => agent.destroy())
  return (method: string, path: string, how: Sent = {}): Promise<Answer> => {
    const { body, token, headers = {}, from } = how
    const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          ...(from === undefined ? { host: 'localhost' } : { host: '127.0.0.1', localAddress: from }),
          port: hub.httpsPort,
          // A test may send any Host. The certificate is for this name.
          servername: 'localhost',
          path,
          method,
          agent,
          headers: {
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
            ...(payload !== undefined && {
              'content-type': 'application/json',
              'content-length': Buffer.byteLength(payload),
            }),
            ...headers,
          },
        },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString()
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parse(text) })
          })
        },
      )
      sent.on('error', reject)
      sent.end(payload)
    })
  }
}

/** Adds a user, sets `password`, and logs the user in. */
export async function addUser(
  hub: Pick<TestHub, 'ask'>,
  api: Api,
  institution: string,
  options: { email?: string; permissions?: string[] } = {},
) {
  const { email = `user-${++users}@radio.example`, permissions = [] } = options
  const added = await hub.ask<{ userId: string; resetToken: string }>('users.add', {
    email,
    institution,
    permissions,
  })
  await api.call('POST', '/auth/reset', { body: { token: added.resetToken, password } })
  const login = await api.call('POST', '/auth/login', { body: { email, password } })
  return {
    email,
    userId: added.userId,
    token: String(login.json.token),
    refreshToken: String(login.json.refreshToken),
  }
}

let users = 0

function parse(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
