import { createServer } from 'node:net'
import { Aedes } from 'aedes'
import persistence from 'aedes-persistence-redis'
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt'
import type { Test } from 'tap'
import type { RedisServer } from './redis-server.ts'

/** Starts Aedes with aedes-persistence-redis as documented, on a free port without TLS. */
export async function startAedesOnRedis(t: Test, redis: Pick<RedisServer, 'client'>) {
  const broker = await Aedes.createBroker({ persistence: persistence({ conn: redis.client() }) })
  const server = createServer((socket) => broker.handle(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= new Promise<void>((resolve) => {
      server.close()
      broker.close(() => resolve())
    })
    return closing
  }
  t.teardown(close)

  return {
    close,

    async connect(options: IClientOptions): Promise<MqttClient> {
      const client = await connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0, ...options }, false)
      client.on('error', () => {})
      t.teardown(() => client.endAsync(true))
      return client
    },

    /** Makes a persistent session with these filters at QoS 1. Its client then disconnects. */
    async leaveSession(clientId: string, ...filters: string[]): Promise<void> {
      const client = await this.connect({ clientId, clean: false })
      await client.subscribeAsync(filters, { qos: 1 })
      await client.endAsync()
    },
  }
}
