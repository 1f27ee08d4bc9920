import { readFileSync } from 'node:fs'
import Fastify from 'fastify'
import { parseJson } from '../../event/json.ts'
import { checkShape } from '../../event/shape.ts'
import { tlsSettings } from '../../listener/tls-settings.ts'
import { answer } from '../answer.ts'
import { openSyncedLog } from './synced-log.ts'

/*
 * The least that the HTTPS door of a hub must do with an event: Fastify reads it, its shape is checked as the hub does,
 * and the answer comes after a synced batch. There is no log-in, and nothing is sent on.
 */

export const commands = {
  async start(of: { cert: string; key: string; directory: string }): Promise<number> {
    const log = await openSyncedLog(of.directory)
    const https = { ...tlsSettings, cert: readFileSync(of.cert), key: readFileSync(of.key) }
    const server = Fastify({ https })
    server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
      done(null, body),
    )
    server.post<{ Params: { eventName: string }; Body: Buffer }>(
      '/events/:eventName',
      async ({ params, body }, reply) => {
        const parsed = parseJson(body)
        if ('errors' in parsed) return reply.code(400).send(parsed)
        const urlEventName = params.eventName
        const shape = checkShape(parsed.value, { protocol: 'https', now: Date.now(), urlEventName })
        if ('errors' in shape) return reply.code(400).send(shape)
        await log.append(body)
        const statuses = { published: shape.event.services.length, blocked: 0, failed: 0 }
        return reply.code(201).send({ statuses, event: shape.event, trace: null })
      },
    )
    await server.listen({ host: '127.0.0.1', port: 0 })
    const address = server.server.address()
    return typeof address === 'object' && address ? address.port : 0
  },
}

answer(commands)
