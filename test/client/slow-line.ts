import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * A line to a port of this machine. From `slowDown` on it carries so many bytes a second towards it, in order. It ends with
 * the test.
 */
export async function openSlowLine(t: Test, to: number, bytesPerSecond: number) {
  const sockets = new Set<Socket>()
  const carrying = new Set<() => void>()
  let isSlow = false
  const server = createServer((client) => {
    const far = connect(to, '127.0.0.1')
    /** What waits on the line. */
    let waiting = Buffer.of()
    const carry = () => {
      far.write(waiting.subarray(0, bytesPerSecond))
      waiting = waiting.subarray(bytesPerSecond)
    }
    carrying.add(carry)
    client.on('data', (bytes: Buffer) => {
      if (isSlow) waiting = Buffer.concat([waiting, bytes])
      else far.write(bytes)
    })
    far.on('data', (bytes) => void client.write(bytes))
    for (const [socket, other] of [
      [client, far],
      [far, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        carrying.delete(carry)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const timer = setInterval(() => {
    for (const carry of carrying) carry()
  }, 1_000)
  t.teardown(() => {
    clearInterval(timer)
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  return {
    port: (server.address() as AddressInfo).port,
    slowDown(): void {
      isSlow = true
    },
  }
}
