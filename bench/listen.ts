import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

/** Lets a server of this machine listen, by default on a free port. Returns the port. */
export async function listen(server: Server, { host = '127.0.0.1', port = 0 } = {}): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
