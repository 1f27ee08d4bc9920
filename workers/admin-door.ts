import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { listenPrivately } from '../admin/socket.ts'

/**
 * Opens the admin socket of a hub with workers: each connection leads to the worker that answers first. So a worker that
 * hangs gets no command. `workers`: asks all of them. Each promise resolves with the path of the admin socket when its
 * worker answers, and rejects if it ends.
 */
export async function openAdminDoor(path: string, workers: () => Promise<string>[]) {
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.on('error', () => client.destroy())
    client.pause()
    void lead(client)
  })
  await listenPrivately(server, path)

  return {
    /** Closes all connections: their workers have ended. */
    async close(): Promise<void> {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
      await rm(path, { force: true })
    },
  }

  async function lead(client: Socket): Promise<void> {
    const sockets = workers().map((answering) => answering.then(connected))
    const socket = await Promise.any(sockets).catch(() => undefined)
    for (const each of sockets) {
      void each.then(
        (other) => other === socket || other.destroy(),
        () => undefined,
      )
    }
    if (!socket) {
      client.destroy()
      return
    }
    for (const end of [client, socket]) {
      open.add(end)
      end.once('close', () => {
        open.delete(end)
        client.destroy()
        socket.destroy()
      })
    }
    client.pipe(socket).pipe(client)
  }
}

/** Rejects if the worker has just ended. */
async function connected(path: string): Promise<Socket> {
  const socket = connect({ path, allowHalfOpen: true })
  socket.on('error', () => socket.destroy())
  await once(socket, 'connect')
  return socket
}
