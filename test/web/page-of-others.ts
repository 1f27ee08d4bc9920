import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { listen } from '../listen.ts'
import type { TestHub } from '../start-hub.ts'

/** Serves a page of another origin, with the certificate of the hub, for as long as the test lasts. */
export async function servePage(t: Test, hub: TestHub, html: string, headers: Record<string, string> = {}) {
  const pem = (name: string) => readFileSync(join(dirname(hub.caPath), name))
  const server = createServer({ cert: pem('server.pem'), key: pem('server-key.pem') }, (_, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    response.setHeader('content-type', 'text/html; charset=utf-8').end(html)
  })
  const port = await listen(t, server)
  return { httpsPort: port, caPath: hub.caPath }
}
