import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { connect } from 'node:tls'
import type { Test } from 'tap'

/** The first bytes that a TLS client sends: its ClientHello. */
export async function clientHello(t: Test): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const client = connect({
    port: typeof address === 'object' && address ? address.port : 0,
    host: '127.0.0.1',
  })
  client.on('error', () => {})
  const [socket]: Socket[] = await once(server, 'connection')
  const [bytes]: Buffer[] = socket ? await once(socket, 'data') : []
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  if (!bytes) throw new Error('no ClientHello')
  return bytes
}
