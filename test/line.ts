import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A line to a port of this machine, until the test ends. `cut` ends its connections. */
export async function openLine(t: Test, to: number) {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const far = connect(to, '127.0.0.1')
    client.pipe(far).pipe(client)
    for (const socket of [client, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        far.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(() => {
    cut()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, cut }
}
