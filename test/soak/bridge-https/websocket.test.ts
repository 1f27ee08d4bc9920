import { readFileSync } from 'node:fs'
import { generate } from 'mqtt-packet'
import t from 'tap'
import { WebSocket } from 'ws'
import { institutions } from '../../events.ts'
import { connectPacket } from '../../raw-client.ts'
import { startTestHub } from '../../start-hub.ts'

const [own = ''] = institutions

t.test('messages that nobody reads are bounded in bytes, over all WebSockets', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '1' })
  const { username, password } = await hub.publisher([own])
  const ca = readFileSync(hub.caPath)
  const packet = { cmd: 'publish', topic: `inbox/${own}`, qos: 0, dup: false, retain: false } as const
  const waits = generate({ ...packet, payload: '{}' })
  const large = generate({ ...packet, payload: Buffer.alloc(400_000) })
  const behind = Buffer.concat([large, large])
  const clients = await Promise.all(
    Array.from({ length: 120 }, async (_, index) => {
      const client = new WebSocket(`wss://localhost:${hub.httpsPort}/mqtt`, ['mqtt'], { ca })
      t.teardown(() => client.terminate())
      client.on('error', () => {})
      await new Promise((resolve) => client.once('open', resolve))
      client.send(
        generate(connectPacket({ clientId: `studio ${index}`, username, password: Buffer.from(password) })),
      )
      await new Promise((resolve) => client.once('message', resolve))
      return client
    }),
  )
  for (const client of clients) client.send(waits)
  // One after the other, so that few messages are in the network at once.
  for (const client of clients) await new Promise((resolve) => client.send(behind, resolve))
  const open = () => clients.filter(({ readyState }) => readyState === WebSocket.OPEN)
  await hub.until(async () => open().length <= 90)
  const { length: left } = open()
  t.ok(left >= 60, `${left} of 120 wait on`)
})
