import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import type { Test } from 'tap'

/** Lets a server listen on a free port of this machine until the test ends. Resolves with the port. */
export async function listen(
  t: Pick<Test, 'teardown'>,
  server: Server & { closeAllConnections?(): void },
  host = '127.0.0.1',
): Promise<number> {
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections?.()
  })
  return (server.address() as AddressInfo).port
}
