import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from '../../redis-server.ts'

export type Network = Awaited<ReturnType<typeof startNetwork>>

/** What a test does to the way between a node and its Redis. */
export type Way = Pick<Network, 'cut' | 'hold' | 'deafen' | 'slow' | 'open' | 'drop'>

/**
 * The way from one client to one server: whole, slow, cut, or silent. Silent as a network that loses packets:
 * connections stay open and nothing arrives.
 */
export async function startNetwork(t: Test, port: number, rewrite = (chunk: Buffer) => chunk) {
  const pairs = new Set<Pair>()
  const there = createValve()
  const back = createValve()
  let isCut = false
  let delayMs = 0

  const server = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const pair: Pair = { near, far: dial(port, '127.0.0.1'), isLost: false }
    near.setNoDelay(true)
    pair.far.setNoDelay(true)
    pairs.add(pair)
    pump(pair, near, pair.far, there)
    pump(pair, pair.far, near, back)
  })
  // Five digits, so that an address can be replaced by another of the same length.
  const own = await freePort()
  server.listen(own, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    drop()
  })

  return {
    port: own,
    /** Connections break at once, and no new ones come about. */
    cut(): void {
      isCut = true
      drop()
    },
    /** Nothing arrives in either direction until `open`. */
    hold(): void {
      there.close()
      back.close()
    },
    /** What the client says arrives; it hears nothing until `open`. */
    deafen: back.close,
    /** Each direction takes so long. */
    slow(ms: number): void {
      delayMs = ms
    },
    /** As a whole network again: what was held arrives. */
    open(): void {
      isCut = false
      delayMs = 0
      there.open()
      back.open()
    },
    /** Connections break, and what was held never arrives. */
    drop,
  }

  function pump(pair: Pair, from: Socket, to: Socket, valve: Valve): void {
    let last = Promise.resolve()
    from.on('error', () => {})
    from.on('data', (chunk) => {
      const due = performance.now() + delayMs
      last = last.then(async () => {
        const early = due - performance.now()
        if (early > 0) await delay(early)
        await valve.opened()
        if (!pair.isLost && !to.destroyed) to.write(rewrite(chunk))
      })
    })
    // The other side learns of the end behind all that was sent before.
    from.on('close', async () => {
      await last
      await valve.opened()
      pairs.delete(pair)
      to.end(() => to.destroy())
    })
  }

  function drop(): void {
    for (const pair of pairs) {
      pair.isLost = true
      pair.near.destroy()
      pair.far.destroy()
    }
    pairs.clear()
  }
}

interface Pair {
  near: Socket
  far: Socket
  isLost: boolean
}

type Valve = ReturnType<typeof createValve>

function createValve() {
  let opened = Promise.resolve()
  let open = () => {}
  let isOpen = true
  return {
    opened: () => opened,
    close(): void {
      if (!isOpen) return
      isOpen = false
      opened = new Promise((resolve) => {
        open = resolve
      })
    },
    open(): void {
      isOpen = true
      open()
    },
  }
}
