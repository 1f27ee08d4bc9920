import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { generateKeyPair, SignJWT } from 'jose'
import { algorithm } from '../../certs/signing-keys.ts'
import { pushBody } from '../../delivery/webhook/push-message.ts'
import { createServiceTokens } from '../../delivery/webhook/service-tokens.ts'
import { tlsSettings } from '../../listener/tls-settings.ts'
import { answer } from '../answer.ts'

/*
 * The least that a hub must do for its webhooks: the same bodies and signed tokens, over kept connections, each webhook
 * in order. Nothing is stored, and no answer leads to another attempt.
 */

const account = 'bench@radio.example'
/** The last delivery of each webhook. */
let queues: Promise<void>[] = []
let failures = 0
let deliver = async (_payload: string): Promise<void> => {}

export const commands = {
  /** Delivers to `count` webhooks at one URL from now on. */
  async start({ url, ca, count }: { url: string; ca: string; count: number }): Promise<void> {
    const { privateKey } = await generateKeyPair(algorithm, { modulusLength: 2048 })
    const issue = (audience: string) =>
      new SignJWT({ sub: account, email: account, email_verified: true })
        .setProtectedHeader({ alg: algorithm, kid: 'bench', typ: 'JWT' })
        .setIssuer('https://bench.example')
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('1h')
        .setJti(randomUUID())
        .sign(privateKey)
    const tokenFor = createServiceTokens(issue, () => 'bench', Date.now)
    const agent = new Agent({ ...tlsSettings, keepAlive: true, ca: readFileSync(ca) })
    queues = Array.from({ length: count }, () => Promise.resolve())
    deliver = async (payload) => {
      const body = pushBody({
        data: Buffer.from(payload),
        attributes: { event: 'bench', livestreamId: 'bench', institutionId: 'bench' },
        messageId: randomUUID(),
        publishedAt: Date.now(),
        subscription: 'bench',
      })
      const headers = {
        authorization: `Bearer ${await tokenFor(url, account)}`,
        'content-type': 'application/json',
        'content-length': body.length,
      }
      await new Promise<void>((resolve, reject) => {
        const sent = request(url, { method: 'POST', agent, headers }, (response) => {
          if (response.statusCode !== 204) failures++
          response.resume().once('end', resolve)
        })
        sent.once('error', reject)
        sent.end(body)
      })
    }
  },

  /** Queues an event for every webhook. */
  push({ payload }: { payload: string }): void {
    queues = queues.map((last) => last.then(() => deliver(payload)))
  },

  /** How many deliveries were not acknowledged. */
  failures: (_: object): number => failures,
}

answer(commands)
