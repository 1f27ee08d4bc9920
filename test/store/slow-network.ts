import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'

/** A network between a node and its Redis: slow, late, deaf, dead for the connections of the moment, or cut. */
export async function startNetwork(t: Test, port: number, { delayMs = 0 } = {}) {
  const open = new Set<Socket>()
  /** The ends of nodes, and those of them that hear nothing. */
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
      // Timers of one length end in their order.
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
    /** Nothing gets through until `mend`; connections break at once. */
    cut(): void {
      isCut = true
      for (const socket of open) socket.destroy()
    },
    mend(): void {
      isCut = false
    },
    /** Everything is late: it gets through when it is released. */
    hold(): void {
      passing = new Promise((resolve) => {
        release = resolve
      })
    },
    release: () => release(),
    /** Nodes that are connected now get no more answers. What they say arrives. */
    deafen(): void {
      for (const node of nodes) deaf.add(node)
    },
    /** What is connected now hears nothing more, not even that it is over. New connections are well. */
    freeze(): void {
      for (const socket of open) socket.pause().removeAllListeners('data')
    },
  }
}
