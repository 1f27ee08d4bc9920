import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from '../../free-port.ts'

export type Network = Awaited<ReturnType<typeof startNetwork>>

/** The faults of the network between a node and its Redis. */
export type Way = Pick<Network, 'cut' | 'hold' | 'deafen' | 'slow' | 'open' | 'drop'>

/**
 * A network between one client and one server, which a test can slow down, cut, or silence. `rewrite` changes the bytes
 * on their way.
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
  // `rewrite` replaces ports in the bytes, and must keep the length of the bytes. So all ports need the five digits
  // that `freePort` gives.
  const own = await freePort()
  server.listen(own, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    drop()
  })

  return {
    port: own,
    /** Breaks all connections, and refuses new ones until `open`. */
    cut(): void {
      isCut = true
      drop()
    },
    /** Nothing arrives in either direction until `open`. */
    hold(): void {
      there.close()
      back.close()
    },
    /** The bytes of the client arrive, but those of the server are held until `open`. */
    deafen: back.close,
    /** Delays each direction by `ms` milliseconds. */
    slow(ms: number): void {
      delayMs = ms
    },
    /** Ends all faults. Held bytes arrive now. */
    open(): void {
      isCut = false
      delayMs = 0
      there.open()
      back.open()
    },
    /** Breaks all connections. Held bytes never arrive. */
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
    // Close the other side after it has got everything that was sent before.
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
