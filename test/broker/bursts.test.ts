import { generate } from 'mqtt-packet'
import t from 'tap'
import { openBroker } from '../conformance/peers.ts'
import { rawClient } from '../raw-client.ts'

t.test(
  'a burst over many connections is decided in many turns, with room for others in between',
  async (t) => {
    const broker = await openBroker(t)
    let inThisTurn = 0
    let most = 0
    broker.receiveWith(async () => {
      if (inThisTurn === 0) setImmediate(() => (inThisTurn = 0))
      most = Math.max(most, ++inThisTurn)
      return true
    })
    const clients = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const client = await rawClient(t, broker.port)
        await client.connect({ clientId: `studio ${index}` })
        return client
      }),
    )
    const ids = Array.from({ length: 50 }, (_, index) => index + 1)
    const burst = ids.map((messageId) =>
      generate({ cmd: 'publish', topic: 'a', payload: 'x', qos: 1, dup: false, retain: false, messageId }),
    )
    for (const client of clients) client.send(...burst)
    for (const client of clients) {
      await client.next('puback', 49)
      const acknowledged = client.packets.flatMap((packet) =>
        packet.cmd === 'puback' ? packet.messageId : [],
      )
      t.strictSame(acknowledged, ids, 'everything, in order')
    }
    t.ok(most <= 128, `at most ${most} in one turn`)
  },
)

t.test('of all connections one SUBSCRIBE with many filters is decided in a turn', async (t) => {
  let inThisTurn = 0
  let most = 0
  const broker = await openBroker(t, {
    access: {
      maySubscribe: () => {
        if (inThisTurn === 0) setImmediate(() => (inThisTurn = 0))
        most = Math.max(most, ++inThisTurn)
        return { allowed: true }
      },
    },
  })
  const clients = await Promise.all(
    Array.from({ length: 10 }, async (_, index) => {
      const client = await rawClient(t, broker.port)
      await client.connect({ clientId: `app ${index}` })
      return client
    }),
  )
  const topics = Array.from({ length: 500 }, (_, index) => `radio/${index}`)
  const subscriptions = topics.map((topic) => ({ topic, qos: 0 as const }))
  const many = generate({ cmd: 'subscribe', messageId: 1, subscriptions })
  const end = generate({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: topics })
  for (const client of clients) client.send(many, end, { cmd: 'pingreq' })
  for (const client of clients) {
    await client.next('pingresp')
    const answers = client.packets.map(({ cmd }) => cmd)
    t.same(answers, ['connack', 'suback', 'unsuback', 'pingresp'], 'everything, in order')
  }
  t.ok(most <= 1000, `at most ${most} filters in one turn`)
})

t.test('a client does not wait for the many connections of another credential', async (t) => {
  const order: string[] = []
  const broker = await openBroker(t, {
    access: {
      authenticate: (username) => ({ role: 'subscriber', username, filters: ['#'] }),
      maySubscribe: ({ username }) => {
        order.push(username)
        return { allowed: true }
      },
    },
  })
  const logIn = async (username: string, clientId: string) => {
    const client = await rawClient(t, broker.port)
    await client.connect({ clientId, username, password: Buffer.from('x') })
    return client
  }
  const greedy = await Promise.all(Array.from({ length: 50 }, (_, index) => logIn('greedy', `app ${index}`)))
  const modest = await logIn('modest', 'radio')
  const subscriptions = Array.from({ length: 500 }, (_, index) => ({
    topic: `radio/${index}`,
    qos: 0 as const,
  }))
  const many = generate({ cmd: 'subscribe', messageId: 1, subscriptions })
  for (const client of greedy) client.send(many, many)
  await greedy[0]?.next('suback')
  modest.send(many)
  await Promise.all([modest.next('suback'), ...greedy.map((client) => client.next('suback', 1))])
  const before = order.lastIndexOf('modest') - 500
  t.ok(before < 10_000, `${before} of 50,000 filters of the other came first`)
})

t.test('the time of an event begins with its last byte, also where it waits for a turn', async (t) => {
  const broker = await openBroker(t)
  const decisions: { started: number; decided: number }[] = []
  broker.receiveWith(async ({ started }) => {
    const decided = performance.now()
    decisions.push({ started, decided })
    // Blocks for 20 ms, like an event that is expensive to decide.
    while (performance.now() < decided + 20);
    return true
  })
  const clients = await Promise.all(
    Array.from({ length: 10 }, async (_, index) => {
      const client = await rawClient(t, broker.port)
      await client.connect({ clientId: `studio ${index}` })
      return client
    }),
  )
  const payload = Buffer.alloc(20_000)
  const large = {
    cmd: 'publish',
    topic: 'a',
    payload,
    qos: 1,
    dup: false,
    retain: false,
    messageId: 1,
  } as const
  for (const client of clients) client.send(large)
  for (const client of clients) await client.next('puback')
  const last = decisions.at(-1)
  t.equal(decisions.length, 10)
  t.ok(last && last.decided - last.started > 100, 'the last waited for the others')
})

t.test('the wait of a publisher above its rate is its own', async (t) => {
  const broker = await openBroker(t, { limits: { publishRate: 10 } })
  const waits: number[] = []
  broker.receiveWith(async ({ started }) => {
    waits.push(performance.now() - started)
    return true
  })
  const client = await rawClient(t, broker.port)
  await client.connect({ clientId: 'studio' })
  const ids = Array.from({ length: 30 }, (_, index) => index + 1)
  client.send(
    ...ids.map((messageId) =>
      generate({ cmd: 'publish', topic: 'a', payload: 'x', qos: 1, dup: false, retain: false, messageId }),
    ),
  )
  await client.next('puback', 29)
  // A pause of the machine may hold up one or two events.
  const [, , third = Infinity] = waits.toSorted((a, b) => b - a)
  t.ok(third < 500, 'ten events waited, the last for a second')
})
