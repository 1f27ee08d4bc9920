import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'

/** A proxy between nodes and their Redis. Delays data by `delayMs` milliseconds. */
export async function startNetwork(t: Test, port: number, { delayMs = 0 } = {}) {
  const open = new Set<Socket>()
  /** The sockets towards nodes. Those in `deaf` get no more data. */
  const nodes = new Set<Socket>()
  const deaf = new Set<Socket>()
  let isCut = false
  let passing = Promise.resolve()
  let release = () => {}
  const server = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = dial(port, '127.0.0.1')
    near.once('close', () => nodes.delete(near))
    nodes.add(near)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        open.delete(from)
        deaf.delete(from)
        to.destroy()
      })
      // Timers of equal length end in the order they began: the data stays in order.
      from.on('data', (chunk) => {
        void passing.then(() => delay(delayMs)).then(() => deaf.has(to) || to.write(chunk))
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  const address = server.address()

  return {
    url: `redis://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    /** Breaks all connections, and refuses new ones until `mend` is called. */
    cut(): void {
      isCut = true
      for (const socket of open) socket.destroy()
    },
    mend(): void {
      isCut = false
    },
    /** Holds all data back until `release` is called. */
    hold(): void {
      passing = new Promise((resolve) => {
        release = resolve
      })
    },
    release: () => release(),
    /** Present connections bring no more answers to nodes, but commands still reach Redis. */
    deafen(): void {
      for (const node of nodes) deaf.add(node)
    },
    /** Present connections carry nothing more, not even their end. New ones work. */
    freeze(): void {
      for (const socket of open) socket.pause().removeAllListeners('data')
    },
  }
}
