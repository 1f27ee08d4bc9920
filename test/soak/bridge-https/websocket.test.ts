import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { generate } from 'mqtt-packet'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { control, institutions, playing, serviceOf, station, stations } from '../../events.ts'
import { connectPacket } from '../../raw-client.ts'
import { type Issued, startTestHub, type TestHub } from '../../start-hub.ts'

const [own = ''] = institutions

t.test('messages that nobody reads are bounded in bytes, over all WebSockets', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '1' })
  const login = await hub.publisher([own])
  const packet = { cmd: 'publish', topic: `inbox/${own}`, qos: 0, dup: false, retain: false } as const
  const waits = generate({ ...packet, payload: '{}' })
  const large = generate({ ...packet, payload: Buffer.alloc(400_000) })
  const behind = Buffer.concat([large, large])
  const clients = await Promise.all(
    Array.from({ length: 120 }, (_, index) => logIn(t, hub, login, `studio ${index}`)),
  )
  // So large, for so many livestreams, that the credential waits for minutes.
  const [first] = clients
  const services = stations[0]?.map(serviceOf)
  const dear = JSON.stringify(playing(station(), { services, title: 'x'.repeat(390_000) }))
  first?.send(generate({ ...packet, qos: 1, messageId: 1, payload: dear }))
  await new Promise((resolve) => first?.once('message', resolve))
  for (const client of clients) client.send(waits)
  // One after the other, so that few messages are in the network at once.
  for (const client of clients) await new Promise((resolve) => client.send(behind, resolve))
  const open = () => clients.filter(({ readyState }) => readyState === WebSocket.OPEN)
  await hub.until(async () => open().length <= 90)
  const { length: left } = open()
  t.ok(left >= 60, `${left} of 120 wait on`)
})

t.test('pings and pongs of one client end no message of another', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.publisher([own])
  const [flood, studio] = [await logIn(t, hub, login, 'flood'), await logIn(t, hub, login, 'studio')]
  const publish = generate({
    ...{ cmd: 'publish', topic: `inbox/${own}`, qos: 1, messageId: 1, dup: false, retain: false },
    payload: JSON.stringify(playing(station(), { title: 'x'.repeat(100_000) })),
  })
  studio.send(publish.subarray(0, 50_000), { fin: false })
  const ended = once(studio, 'close')
  const isOpen = ({ readyState }: WebSocket) => readyState === WebSocket.OPEN
  // More than all incomplete messages together may have.
  for (let sent = 0; sent < 70 * mebibyte && isOpen(flood) && isOpen(studio); sent += 2_000 * 131) {
    for (let nth = 1; nth < 2_000; nth++) flood.pong(Buffer.alloc(125))
    await new Promise((resolve) => flood.pong(Buffer.alloc(125), undefined, resolve))
  }
  const answer = once(studio, 'message')
  studio.send(publish.subarray(50_000), { fin: true })
  const [answered] = await Promise.race([answer, ended])
  t.match(answered, Buffer.of(0x40, 2, 0, 1), 'PUBACK')
})

t.test('a client that sends nothing but pings stays', async (t) => {
  const hub = await startTestHub(t)
  const player = await logIn(t, hub, await hub.subscriber('radio/#'), 'player')
  let pongs = 0
  player.on('pong', () => pongs++)
  // Twice the largest message, and more, in bytes.
  for (let pings = 0; pings < 20_000; pings += 50) {
    for (let nth = 0; nth < 50; nth++) player.ping(Buffer.alloc(125))
    while (pongs < pings + 50) await once(player, 'pong')
  }
  t.equal(pongs, 20_000)
  const answer = once(player, 'message')
  player.send(generate({ cmd: 'pingreq' }))
  t.match(await answer, [Buffer.of(0xd0, 0)])
})

/** How a client ends its WebSocket. paho-mqtt sends no close, and only ends the connection. */
const ends: Record<string, (websocket: WebSocket, socket: TLSSocket) => void> = {
  'a close': (websocket) => websocket.close(1000),
  'the end of the connection': (_websocket, socket) => void socket.end(),
}

for (const [what, end] of Object.entries(ends)) {
  t.test(`packets before DISCONNECT and ${what} count, and there is no will`, async (t) => {
    const rate = 5
    const hub = await startTestHub(t, { HUB_PUBLISH_RATE: `${rate}` })
    const login = await hub.publisher([own])
    const publishOf = (name: string) => ({
      topic: `inbox/${own}`,
      qos: 1 as const,
      retain: false,
      payload: Buffer.from(JSON.stringify(control(station(), { name }))),
    })
    const socket = openTls(hub)
    const studio = await logIn(t, hub, login, 'studio', { will: publishOf('will') }, socket)
    // A burst of twice the rate need not wait.
    const names = Array.from({ length: 3 * rate }, (_, index) => `event ${index}`)
    const publishes = names.map((name, index) =>
      generate({ cmd: 'publish', messageId: index + 1, dup: false, ...publishOf(name) }),
    )
    studio.send(Buffer.concat([...publishes, generate({ cmd: 'disconnect' })]))
    end(studio, socket)
    await hub.until(async () => hub.lines.some(({ msg }) => msg === 'client disconnected'))
    const { events } = await hub.ask<{ events: { name: string }[] }>('events.list', {
      livestream: station().id,
    })
    t.same(events.map(({ name }) => name).reverse(), names)
  })
}

t.test('a client that sends a message for longer than its keep alive is not silent', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.publisher([own])
  const studio = await logIn(t, hub, login, 'studio', { keepalive: 1 })
  const isCut = once(studio, 'close').then(() => [])
  const packet = generate({
    ...{ cmd: 'publish', topic: `inbox/${own}`, qos: 1, messageId: 1, dup: false, retain: false },
    payload: JSON.stringify(playing(station())),
  })
  const answer = once(studio, 'message')
  // One byte in each half keep alive, for three of them.
  for (let at = 0; at < 6; at++) {
    studio.send(packet.subarray(at, at + 1), { fin: false })
    await Promise.race([delay(500), isCut])
  }
  studio.send(packet.subarray(6), { fin: true })
  const [answered] = await Promise.race([answer, isCut])
  t.match(answered, Buffer.of(0x40, 2, 0, 1), 'PUBACK')
})

const mebibyte = 1024 * 1024

function openTls({ httpsPort, caPath }: TestHub): TLSSocket {
  return connect({ host: 'localhost', port: httpsPort, ca: readFileSync(caPath) })
}

/** Connects a client over WebSocket. */
async function logIn(
  t: Test,
  hub: TestHub,
  { username, password }: Issued,
  clientId: string,
  fields: { will?: object; keepalive?: number } = {},
  socket = openTls(hub),
): Promise<WebSocket> {
  const client = new WebSocket('wss://localhost/mqtt', ['mqtt'], { createConnection: () => socket })
  t.teardown(() => client.terminate())
  client.on('error', () => {})
  await once(client, 'open')
  client.send(generate(connectPacket({ clientId, username, password: Buffer.from(password), ...fields })))
  await once(client, 'message')
  return client
}
