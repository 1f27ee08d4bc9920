import { readFileSync } from 'node:fs'
import t from 'tap'
import { institutions, playing, station } from '../../../events.ts'
import { rawClient } from '../../../raw-client.ts'
import { type Issued, startTestHub } from '../../../start-hub.ts'

const [own = ''] = institutions

t.test('packets that nobody finishes take bounded room, and others go on', async (t) => {
  const hub = await startTestHub(t)
  const ca = readFileSync(hub.caPath)
  const login = await hub.publisher([own])
  const join = async (clientId: string, { username, password }: Issued = login) => {
    const client = await rawClient(t, hub.mqttPort, ca)
    t.equal((await client.connect({ clientId, username, password: Buffer.from(password) })).returnCode, 0)
    return client
  }
  // A PUBLISH that announces 470,000 bytes, but has only 450,000. 150 of these have more than 64 MiB together.
  const unfinished = Buffer.concat([Buffer.from('30f0d71c', 'hex'), Buffer.alloc(450_000, 0)])
  const first = await join('attack 0')
  first.socket.write(unfinished)
  for (let count = 1; count < 150; count++) (await join(`attack ${count}`)).socket.write(unfinished)
  await first.closed()
  const publisher = await join('publisher')
  const payload = Buffer.from(JSON.stringify(playing(station(), { title: 'x'.repeat(100_000) })))
  publisher.send({
    cmd: 'publish',
    topic: `inbox/${own}`,
    qos: 1,
    messageId: 1,
    dup: false,
    retain: false,
    payload,
  })
  t.equal((await publisher.next('puback')).messageId, 1, 'a large event gets through')
  const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
  t.ok(Number(counters['hub_connections_cut_total{reason=overload}']) > 0)
})

t.test(
  'packets in thousands of tiny pieces close the connection, before log-in and afterwards',
  async (t) => {
    const hub = await startTestHub(t)
    const ca = readFileSync(hub.caPath)
    const { username, password } = await hub.publisher([own])
    const drip = async (client: Awaited<ReturnType<typeof rawClient>>, header: string) => {
      client.send(Buffer.from(header, 'hex'))
      // Send each byte in a TLS record of its own.
      for (let count = 0; count < 3000 && !client.isClosed; count++) {
        await new Promise((resolve) => client.socket.write(Buffer.of(0), resolve))
      }
      await client.closed()
    }
    await drip(await rawClient(t, hub.mqttPort, ca), '10e8fb03')
    const client = await rawClient(t, hub.mqttPort, ca)
    await client.connect({ clientId: 'drip', username, password: Buffer.from(password) })
    await drip(client, '30e8fb03')
    const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
    t.equal(counters['hub_connections_cut_total{reason=protocol}'], 2)
  },
)

t.test('thousands of the smallest packets in one write are all answered', async (t) => {
  const hub = await startTestHub(t)
  const { username, password } = await hub.publisher([own])
  const client = await rawClient(t, hub.mqttPort, readFileSync(hub.caPath))
  await client.connect({ clientId: 'pings', username, password: Buffer.from(password) })
  client.socket.write(Buffer.alloc(20_000, Buffer.of(0xc0, 0)))
  t.equal((await client.next('pingresp', 9_999)).cmd, 'pingresp')
})
