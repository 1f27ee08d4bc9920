import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { makeFolder } from '../ending.ts'

export type Webhooks = Awaited<ReturnType<typeof startWebhooks>>

/**
 * Starts webhooks on localhost. `/ok` acknowledges, and calls `arrived` with the playlistItemId. Three are dead:
 * `/error` answers 500, `/silent` never answers, port 1025 refuses connections.
 */
export async function startWebhooks(arrived: (playlistItemId: string) => void) {
  const home = makeFolder()
  const tls = await ensureDevelopmentCertificates(home, [])
  const server = createServer({ key: readFileSync(tls.key), cert: readFileSync(tls.cert) })
  server.keepAliveTimeout = 60_000
  server.on('request', async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.url === '/silent') return
    response.writeHead(request.url === '/error' ? 500 : 204).end()
    if (request.url !== '/ok') return
    const { message } = JSON.parse(Buffer.concat(chunks).toString())
    arrived(JSON.parse(Buffer.from(message.data, 'base64').toString()).playlistItemId)
  })
  const port = await listen(server)
  // On one port, dead and healthy webhooks would be one endpoint for the hub.
  const dead = createServer({ key: readFileSync(tls.key), cert: readFileSync(tls.cert) })
  dead.on('request', (request, response) => server.emit('request', request, response))
  const deadPort = await listen(dead)

  return {
    ca: tls.ca,
    ok: `https://localhost:${port}/ok`,
    dead: [
      `https://localhost:${deadPort}/error`,
      `https://localhost:${deadPort}/silent`,
      'https://localhost:1025/',
    ],
    async close(): Promise<void> {
      for (const each of [server, dead]) {
        each.closeAllConnections()
        each.close()
      }
      await rm(home, { recursive: true, force: true })
    },
  }
}

async function listen(server: ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
