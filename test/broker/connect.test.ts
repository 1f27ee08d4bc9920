import { generate } from 'mqtt-packet'
import t from 'tap'
import { openBroker } from '../conformance/peers.ts'
import { rawClient } from '../raw-client.ts'
import { stall } from '../stall.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const protocol = '0004 4d515454'
const clientId = '0001 63'

/** A CONNECT made of its variable header and payload. */
function connectPacket(body: string): Buffer {
  const bytes = hex(body)
  return Buffer.concat([Buffer.of(0x10, bytes.length), bytes])
}

t.test('a CONNECT that is not MQTT 3.1.1 gets return code 1 and is closed', async (t) => {
  const broker = await openBroker(t)
  const table: [what: string, packet: Buffer][] = [
    ['MQTT 3.1', connectPacket(`0006 4d5149736470 03 02 0000 ${clientId}`)],
    ['level 3 under the name MQTT', connectPacket(`${protocol} 03 02 0000 ${clientId}`)],
    ['level 2', connectPacket(`${protocol} 02 02 0000 ${clientId}`)],
    ['MQTT 5', connectPacket(`${protocol} 05 02 0000 00 ${clientId}`)],
    ['level 6', connectPacket(`${protocol} 06 02 0000 ${clientId}`)],
    ['level 3 with the bit of a bridge', connectPacket(`${protocol} 83 02 0000 ${clientId}`)],
    ['level 5 with the bit of a bridge', connectPacket(`${protocol} 85 02 0000 00 ${clientId}`)],
    ['MQTT 3.1 of a bridge', connectPacket(`0006 4d5149736470 83 02 0000 ${clientId}`)],
  ]
  for (const [what, packet] of table) {
    const client = await rawClient(t, broker.port)
    client.send(packet)
    const connack = await client.next('connack')
    t.equal(connack.returnCode, 1, what)
    t.equal(connack.sessionPresent, false)
    await client.closed()
  }
})

t.test('a malformed CONNECT is closed without an answer', async (t) => {
  const broker = await openBroker(t)
  const table: [what: string, packet: Buffer][] = [
    ['another protocol', connectPacket(`0004 48545450 04 02 0000 ${clientId}`)],
    ['reserved flag', connectPacket(`${protocol} 04 03 0000 ${clientId}`)],
    ['will QoS without will', connectPacket(`${protocol} 04 0a 0000 ${clientId}`)],
    ['will retain without will', connectPacket(`${protocol} 04 22 0000 ${clientId}`)],
    ['will QoS 3', connectPacket(`${protocol} 04 1e 0000 ${clientId} 0001 77 0001 78`)],
    ['will topic empty', connectPacket(`${protocol} 04 06 0000 ${clientId} 0000 0001 78`)],
    ['will topic with a wildcard', connectPacket(`${protocol} 04 06 0000 ${clientId} 0001 23 0001 78`)],
    ['password without user name', connectPacket(`${protocol} 04 42 0000 ${clientId} 0001 70`)],
    ['user name flag without user name', connectPacket(`${protocol} 04 82 0000 ${clientId}`)],
    ['bytes behind the last field', connectPacket(`${protocol} 04 02 0000 ${clientId} 00`)],
    ['truncated client id', connectPacket(`${protocol} 04 02 0000 0005 63`)],
    ['client id with U+0000', connectPacket(`${protocol} 04 02 0000 0003 610062`)],
    ['client id that is not UTF-8', connectPacket(`${protocol} 04 02 0000 0001 ff`)],
    ['user name that is not UTF-8', connectPacket(`${protocol} 04 82 0000 ${clientId} 0001 ff`)],
    [
      'reserved header flags',
      Buffer.concat([Buffer.of(0x11), connectPacket(`${protocol} 04 02 0000 ${clientId}`).subarray(1)]),
    ],
    ['another packet first', generate({ cmd: 'pingreq' })],
    ['TLS on a plain port', hex('16 03 01 00')],
  ]
  for (const [what, packet] of table) {
    const client = await rawClient(t, broker.port)
    client.send(packet)
    await client.closed()
    t.same(client.packets, [], what)
  }
})

t.test('an empty client id needs a clean session', async (t) => {
  const broker = await openBroker(t)
  const refused = await rawClient(t, broker.port)
  refused.send(connectPacket(`${protocol} 04 00 0000 0000`))
  t.equal((await refused.next('connack')).returnCode, 2)
  await refused.closed()
  const accepted = await rawClient(t, broker.port)
  accepted.send(connectPacket(`${protocol} 04 02 0000 0000`))
  t.equal((await accepted.next('connack')).returnCode, 0)
})

t.test('a second CONNECT closes the connection', async (t) => {
  const broker = await openBroker(t)
  const client = await rawClient(t, broker.port)
  await client.connect()
  client.send({
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: 4,
    clean: true,
    clientId: 'raw',
    keepalive: 0,
  })
  await client.closed()
  t.equal(client.packets.length, 1)
})

t.test('packets right behind the CONNECT wait for the log-in', async (t) => {
  const broker = await openBroker(t)
  const client = await rawClient(t, broker.port)
  const subscribe = generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'a', qos: 1 }] })
  const publishes = Array.from({ length: 100 }, (_, index) =>
    generate({
      cmd: 'publish',
      topic: 'a',
      payload: `${index}`,
      qos: 1,
      messageId: index + 1,
      retain: false,
      dup: false,
    }),
  )
  client.send(connectPacket(`${protocol} 04 02 0000 ${clientId}`), subscribe, ...publishes)
  await client.next('puback', 99)
  await client.next('publish', 99)
  t.same(
    client.packets.slice(0, 2).map(({ cmd }) => cmd),
    ['connack', 'suback'],
  )
  const order = client.packets.filter((packet) => packet.cmd === 'puback').map(({ messageId }) => messageId)
  t.same(
    order,
    order.toSorted((a, b) => Number(a) - Number(b)),
    'acknowledged in order',
  )
})

for (const [qos, answer] of [
  [1, 'puback'],
  [2, 'pubrec'],
] as const) {
  t.test(
    `a PUBLISH at QoS ${qos} right before DISCONNECT is answered, then the connection closed`,
    async (t) => {
      const broker = await openBroker(t)
      const decisionAsked = new Promise<(isAccepted: boolean) => void>((ask) => {
        broker.receiveWith(() => new Promise<boolean>(ask))
      })
      const client = await rawClient(t, broker.port)
      await client.connect({ clientId: 'studio' })
      const packet = {
        cmd: 'publish',
        topic: 'a',
        payload: 'x',
        dup: false,
        retain: false,
        messageId: 7,
      } as const
      client.send(generate({ ...packet, qos }), { cmd: 'disconnect' })
      const decide = await decisionAsked
      // Time in which the connection could be closed too early.
      await new Promise((resolve) => setTimeout(resolve, 50))
      t.notOk(client.isClosed)
      decide(true)
      t.equal((await client.next(answer)).messageId, 7)
      await client.closed()
    },
  )
}

t.test(
  'a client that is silent beyond its keep alive is closed, one that only acknowledges is not',
  async (t) => {
    const broker = await openBroker(t)
    const silent = await rawClient(t, broker.port)
    await silent.connect({ clientId: 'silent', keepalive: 1 })
    const alive = await rawClient(t, broker.port)
    await alive.connect({ clientId: 'alive', keepalive: 1 })
    const acknowledging = setInterval(() => alive.send({ cmd: 'puback', messageId: 1 }), 300)
    t.teardown(() => clearInterval(acknowledging))
    await silent.closed()
    t.notOk(alive.isClosed)
    await alive.settled()
  },
)

t.test('what came while the node was held up counts for the keep alive', async (t) => {
  const broker = await openBroker(t)
  const client = await rawClient(t, broker.port)
  await client.connect({ clientId: 'heard', keepalive: 1 })
  await client.settled()
  client.send({ cmd: 'pingreq' })
  stall(1_700)
  await client.next('pingresp')
  await client.settled()
  t.notOk(client.isClosed)
})

t.test('an unauthenticated connection is never allowed a large packet', async (t) => {
  const broker = await openBroker(t, { limits: { maxConnectPacket: 1000 } })
  const client = await rawClient(t, broker.port)
  client.send(hex('10 80 80 80 64'))
  await client.closed()
  t.match(
    broker.lines.find(({ msg }) => msg === 'connection closed'),
    { reason: 'protocol', detail: /at most 1000/ },
  )
})

t.test('a connection without CONNECT is closed after a while', async (t) => {
  const broker = await openBroker(t, { limits: { connectTimeoutMs: 50 } })
  const client = await rawClient(t, broker.port)
  await client.closed()
  t.same(client.packets, [])
})

t.test('failed log-ins of an address are refused for a while', async (t) => {
  const broker = await openBroker(t, {
    loginFailures: 3,
    access: {
      authenticate: (_user, password) => (password?.toString() === 'right' ? broker.everybody : undefined),
    },
  })
  const codes: (number | undefined)[] = []
  for (const password of ['wrong', 'wrong', 'wrong', 'wrong', 'right']) {
    const client = await rawClient(t, broker.port)
    const login = { username: 'u'.repeat(9_000), password: Buffer.from(password) }
    codes.push((await client.connect({ clientId: 'i'.repeat(9_000), ...login })).returnCode)
  }
  t.same(codes, [4, 4, 4, 3, 3], 'also with the right password')
  const logged = broker.lines
    .filter(({ msg }) => msg === 'log-in refused')
    .map(({ reason, username, clientId, times }) => ({ reason, username, clientId, times }))
  const shortened = { username: 'u'.repeat(200), clientId: 'i'.repeat(200) }
  t.same(
    logged,
    ['credentials', 'too-many-failures'].map((reason) => ({ reason, ...shortened, times: 1 })),
    'strangers fill no disk',
  )

  let refused = 0
  for (const end = Date.now() + 1_500; Date.now() < end; refused++) {
    const client = await rawClient(t, broker.port)
    await client.connect({ clientId: 'restless', username: 'u', password: Buffer.from('wrong') })
  }
  t.ok(refused <= 2, `one that comes back at once waits for its answer: ${refused} answers in 1.5 s`)
})
