import { generate, parser } from 'mqtt-packet'
import t from 'tap'
import { encodeForAedes, judgeConnect } from '../../../broker/connection/connect-packet.ts'
import { encodeValue } from '../../../journal/entry.ts'
import { openBroker, openFailing } from '../../conformance/peers.ts'
import type { PlainBroker } from '../../plain-broker.ts'
import { rawClient } from '../../raw-client.ts'
import { until } from '../../until.ts'
import { createFrameReader } from '../connection/frame-reader.ts'
import { touches } from '../failing-store.ts'

const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false }

async function connect(t: Parameters<typeof rawClient>[0], broker: PlainBroker, fields: object) {
  const client = await rawClient(t, broker.port)
  const { returnCode } = await client.connect({ ...fields })
  return { client, returnCode }
}

/** Breaks the connection of a client. Resolves when the broker has noticed that. */
async function lose(broker: PlainBroker, { client }: Awaited<ReturnType<typeof connect>>, clientId: string) {
  client.socket.destroy()
  await until(async () => !(await broker.broker.isConnected(clientId)))
}

t.test('a will that is going to be denied is kept without its payload', async (t) => {
  const mayPublish = (_principal: object, topic: string) => ({ allowed: topic === 'own' })
  const broker = await openBroker(t, { access: { mayPublish } })
  const published: [topic: string, bytes: number][] = []
  broker.receiveWith(async ({ topic, payload, alongside }) => {
    published.push([topic, payload.length])
    await broker.store.commit(alongside)
    return true
  })
  const payload = Buffer.alloc(60_000)
  const own = await connect(t, broker, { clientId: 'own', will: { ...will, topic: 'own', payload } })
  const foreign = await connect(t, broker, {
    clientId: 'foreign',
    will: { ...will, topic: 'foreign', payload },
  })
  const stored: Record<string, boolean> = {}
  for await (const [key, value] of broker.store.range('will/')) {
    stored[key.split('/')[1] ?? ''] = value.length > payload.length
  }
  t.same(stored, { own: true, foreign: false })
  await lose(broker, own, 'own')
  await lose(broker, foreign, 'foreign')
  await until(() => published.length === 2)
  t.same(published.sort(), [
    ['foreign', 0],
    ['own', 60_000],
  ])
})

t.test('a node that finds left-over wills only later leaves those of its clients alone', async (t) => {
  const principal = { role: 'subscriber', username: 'everybody', filters: ['#'] }
  const leftOver = { clientId: 'earlier', principal, node: 'gone', topic: 'earlier', qos: 0, retain: false }
  let isFirst = true
  const broker = await openBroker(t, {
    wrapStore: (store) => ({
      ...store,
      async *range(prefix, ...bounds) {
        if (prefix === 'will/' && isFirst) {
          isFirst = false
          await store.commit([{ put: 'will/earlier/1', value: encodeValue(leftOver, will.payload) }])
          throw new Error('read error')
        }
        yield* store.range(prefix, ...bounds)
      },
    }),
  })
  const published: string[] = []
  broker.receiveWith(async ({ topic, alongside }) => {
    published.push(topic)
    await broker.store.commit(alongside)
    return true
  })
  const { client } = await connect(t, broker, { clientId: 'here', will: { ...will, topic: 'here' } })
  await until(() => published.length > 0)
  client.send({ cmd: 'pingreq' })
  await client.next('pingresp')
  t.same(published, ['earlier'])
})

t.test('the wills of the connected clients of a credential have a bound in bytes', async (t) => {
  const broker = await openBroker(t)
  const large = { ...will, payload: Buffer.alloc(64_000) }
  const code = async (clientId: string, fields: object) =>
    (await connect(t, broker, { clientId, ...fields })).returnCode
  const polite = await connect(t, broker, { clientId: 'polite', will: large })
  let count = 1
  const many = Array.from({ length: 250 }, (_, index) => code(`${index}`, { will: large }))
  t.ok((await Promise.all(many)).every((returnCode) => returnCode === 0))
  count += many.length
  while ((await code(`${count}`, { will: large })) === 0 && count < 400) count++
  const mebibytes = (count * 64_000) / 1024 / 1024
  t.ok(mebibytes > 15 && mebibytes <= 16, `${mebibytes} MiB`)
  t.equal(await code('one more', { will: large }), 3)
  t.match(
    broker.lines.findLast(({ msg }) => msg === 'log-in refused'),
    { reason: 'too-many-wills' },
  )
  t.equal(await code('without a will', {}), 0)
  polite.client.send({ cmd: 'disconnect' })
  await until(async () => !(await broker.broker.isConnected('polite')))
  t.equal(await code('after a farewell', { will: large }), 0, 'a will that is void takes no room')
})

t.test(
  'Aedes learns that there is a will, not what it says, and neither user name nor password',
  async (t) => {
    const reader = createFrameReader(100_000)
    const fields = {
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 4,
      clientId: 'c',
      clean: true,
    } as const
    const large = { topic: 'long topic', payload: Buffer.alloc(60_000), qos: 1, retain: true } as const
    for (const one of [large, undefined]) {
      const credentials = { username: 'encoder', password: Buffer.from([0, 255]) }
      reader.push(generate({ ...fields, keepalive: 60, ...credentials, ...(one && { will: one }) }))
      const frame = reader.next()
      const judged = frame && judgeConnect(frame, 100)
      if (!judged || 'refusal' in judged) throw new Error('it is not let in')
      t.same(judged.credentials, credentials)
      const parse = parser()
      parse.once('packet', (packet) => {
        t.match(packet, { ...fields, keepalive: 0, username: undefined, password: undefined })
        t.match('will' in packet ? packet.will : undefined, one && { topic: 'x', payload: Buffer.alloc(0) })
      })
      parse.parse(encodeForAedes(judged.request))
    }
  },
)

t.test('a will keeps no other bytes in memory', async (t) => {
  const reader = createFrameReader(1_000)
  reader.push(generate({ cmd: 'connect', clientId: 'c', clean: true, keepalive: 0, will }))
  const frame = reader.next()
  const judged = frame && judgeConnect(frame, 100)
  if (!judged || 'refusal' in judged) throw new Error('it is not let in')
  const { payload } = judged.request.will ?? {}
  t.ok(payload?.length)
  t.equal(payload?.buffer.byteLength, payload?.length)
})

t.test('the will of a credential that is not valid any more is void', async (t) => {
  const valid = { now: true }
  const broker = await openBroker(t, { access: { isValid: () => valid.now } })
  const watcher = await connect(t, broker, { clientId: 'watcher' })
  watcher.client.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: '#', qos: 0 }] })
  await watcher.client.next('suback')
  for (const isValid of [false, true]) {
    const { client } = await connect(t, broker, { clientId: `${isValid}`, will })
    valid.now = isValid
    client.socket.destroy()
    await until(async () => !(await broker.broker.isConnected(`${isValid}`)))
  }
  await watcher.client.next('publish')
  await watcher.client.settled()
  t.equal(watcher.client.packets.filter(({ cmd }) => cmd === 'publish').length, 1)
})

t.test('the will of a client that said DISCONNECT is removed as soon as the store can', async (t) => {
  const cases: [clean: boolean, failing: string][] = [
    [true, 'will/'],
    [false, 'will/'],
    [false, 'session/'],
    [false, ''],
  ]
  for (const [clean, failing] of cases) {
    const { store, broker } = await openFailing(t)
    const { client } = await connect(t, broker, { clientId: 'polite', clean, will })
    store.fail(touches(failing))
    client.send({ cmd: 'disconnect' })
    await until(() => store.refused > 0)
    store.heal()
    await untilNoWill(broker)
    t.pass(`clean ${clean}, while the store refused keys of ${failing || 'all kinds'}`)
  }
})

t.test('the will of a log-in that failed is removed, also if the store has it', async (t) => {
  const isWill = touches('will/')
  let isLate = true
  const broker = await openBroker(t, {
    wrapStore: (store) => ({
      ...store,
      async commit(changes, underway) {
        const first = await store.commit(changes, underway)
        if (!isLate || !isWill(changes)) return first
        isLate = false
        throw new Error('not committed, it may still be applied')
      },
    }),
  })
  const client = await rawClient(t, broker.port)
  t.strictSame(await client.connectInVain({ clientId: 'c', will }), [])
  await untilNoWill(broker)
})

function untilNoWill({ store }: PlainBroker): Promise<void> {
  return until(async () => {
    for await (const _will of store.range('will/')) return false
    return true
  })
}
