import { rm } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { makeFolder } from '../ending.ts'
import { startReceiver } from './receiver.ts'

export type Webhooks = Awaited<ReturnType<typeof startWebhooks>>

/**
 * Starts webhooks on localhost. `/ok` acknowledges, and calls `arrived` with the playlistItemId. Three are dead:
 * `/error` answers 500, `/silent` never answers, port 1025 refuses connections.
 */
export async function startWebhooks(arrived: (playlistItemId: string) => void) {
  const home = makeFolder()
  const tls = await ensureDevelopmentCertificates(home, [])
  const got = (body: string, response: ServerResponse, { url }: IncomingMessage) => {
    if (url === '/silent') return
    response.writeHead(url === '/error' ? 500 : 204).end()
    if (url !== '/ok') return
    const { message } = JSON.parse(body)
    arrived(JSON.parse(Buffer.from(message.data, 'base64').toString()).playlistItemId)
  }
  const healthy = await startReceiver(tls, got)
  // On one port, dead and healthy webhooks would be one endpoint for the hub.
  const dead = await startReceiver(tls, got)

  return {
    ca: tls.ca,
    ok: `https://localhost:${healthy.port}/ok`,
    dead: [
      `https://localhost:${dead.port}/error`,
      `https://localhost:${dead.port}/silent`,
      'https://localhost:1025/',
    ],
    async close(): Promise<void> {
      await healthy.close()
      await dead.close()
      await rm(home, { recursive: true, force: true })
    },
  }
}
