import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { listenPrivately } from '../admin/socket.ts'

/**
 * Opens the admin socket of a hub with workers: each connection leads to the admin socket of a worker. `sockets`: those
 * of the workers that live now.
 */
export async function openAdminDoor(path: string, sockets: () => string[]) {
  const open = new Set<Socket>()
  let turn = 0
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
    const paths = sockets()
    const first = turn++
    for (const index of paths.keys()) {
      const socket = await connected(paths[(first + index) % paths.length] ?? '')
      if (!socket) continue
      for (const end of [client, socket]) {
        open.add(end)
        end.once('close', () => {
          open.delete(end)
          client.destroy()
          socket.destroy()
        })
      }
      client.pipe(socket).pipe(client)
      return
    }
    client.destroy()
  }
}

/** Undefined: the worker has just ended. */
async function connected(path: string): Promise<Socket | undefined> {
  const socket = connect({ path, allowHalfOpen: true })
  socket.on('error', () => socket.destroy())
  return once(socket, 'connect').then(
    () => socket,
    () => undefined,
  )
}
