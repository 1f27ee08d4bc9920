import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { text } from 'node:stream/consumers'
import { listen } from '../listen.ts'

/** Starts an HTTPS server for what a hub posts. `got` answers each request when its body is there. */
export async function startReceiver(
  { cert, key }: { cert: string; key: string },
  got: (body: string, response: ServerResponse, request: IncomingMessage) => void | Promise<void>,
  host?: string,
) {
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) })
  server.keepAliveTimeout = 60_000
  server.on('request', async (request, response) => got(await text(request), response, request))
  return {
    port: await listen(server, { ...(host !== undefined && { host }) }),
    async close(): Promise<void> {
      server.closeAllConnections()
      server.close()
    },
  }
}
