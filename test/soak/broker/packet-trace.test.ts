import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { TraceLine } from '../../../broker/packet-trace.ts'
import { connect } from '../../clients.ts'
import { openBroker } from '../../conformance/peers.ts'
import { control, institutions, station } from '../../events.ts'
import { followPackets, openLines } from '../../follow.ts'
import { rawClient } from '../../raw-client.ts'
import { withoutRedis } from '../../redis-server.ts'
import { startTestHub } from '../../start-hub.ts'
import { onStore } from '../../stores.ts'
import { startWorkers, workersOf } from '../workers/start-workers.ts'

/*
 * `hubctl trace`: the packets of one client.
 */

const [own = ''] = institutions
const livestream = station()
const secret = 'this is nobody else’s business'
const packetsOf = (lines: TraceLine[]) =>
  lines.flatMap(({ what, packet }) => (packet ? [`${what} ${packet}`] : []))
const isEnd = ({ what }: TraceLine) => what === 'end'

t.test('the packets of a client are shown from its CONNECT to its end', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.publisher([own])
  const { lines, until } = await followPackets(t, hub, 'studio')
  t.match(lines, [{ what: 'trace', text: /not connected/ }])
  const will = { topic: `inbox/${own}`, payload: Buffer.from(secret), qos: 1, retain: false } as const
  const { client } = await connect(t, hub, login, { clientId: 'studio', will })
  const filters = { [`feedback/${own}`]: { qos: 1 }, 'radio/#': { qos: 2 } } as const
  await t.rejects(client.subscribeAsync(filters), 'a publisher may not read all')
  await client.publishAsync(`inbox/${own}`, JSON.stringify({ ...control(livestream), name: secret }), {
    qos: 1,
  })
  await until(({ what, packet }) => what === 'in' && packet === 'PUBACK')
  await client.unsubscribeAsync('radio/#')
  await client.endAsync()
  await until(isEnd)
  t.same(
    packetsOf(lines)
      .filter((packet) => !packet.endsWith('PUBLISH'))
      .slice(0, 4),
    ['in CONNECT', 'out CONNACK', 'in SUBSCRIBE', 'out SUBACK'],
  )
  const find = (packet: string, way = 'in') =>
    lines.find((line) => line.packet === packet && line.what === way)
  t.match(find('CONNECT'), {
    connection: 1,
    text: `MQTT 4, clean session, keep alive 60 s, will to inbox/${own} (QoS 1, ${Buffer.byteLength(secret)} bytes), user ${login.username}, with a password`,
  })
  t.match(find('CONNACK', 'out'), { returnCodes: [0], text: 'no session', bytes: 4 })
  t.match(find('SUBSCRIBE'), { filters: [`feedback/${own} (QoS 1)`, 'radio/# (QoS 2)'] })
  t.match(find('SUBACK', 'out'), { returnCodes: [1, 128] })
  t.match(find('PUBLISH'), { topic: `inbox/${own}`, qos: 1, retain: false, dup: false })
  t.equal(find('PUBACK', 'out')?.packetId, find('PUBLISH')?.packetId)
  t.match(find('PUBLISH', 'out'), { topic: `feedback/${own}`, qos: 1 })
  t.equal(find('PUBACK')?.packetId, find('PUBLISH', 'out')?.packetId)
  t.ok(find('UNSUBACK', 'out'))
  t.match(lines.find(isEnd), { text: 'DISCONNECT' })
  const text = JSON.stringify(lines)
  for (const hidden of [login.password, secret]) t.notOk(text.includes(hidden), 'no secret and no payload')
  const entries = await hub.ask<object[]>('audit')
  t.match(entries.at(-1), { action: 'trace', target: 'studio', detail: { for: 60 }, who: 'tester' })
})

t.test('a client that is connected already is shown, and again when it comes back', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.subscriber('radio/#')
  await connect(t, hub, login, { clientId: 'player' })
  const { lines, until } = await followPackets(t, hub, 'player')
  t.match(await until(({ what }) => what === 'open'), { connection: 1, text: /^from .*, connected since 20/ })
  await connect(t, hub, login, { clientId: 'bystander' })
  await connect(t, hub, login, { clientId: 'player' })
  t.match(await until(isEnd), { connection: 1, text: /^the hub closed it: takeover/ })
  t.match(await until(({ packet }) => packet === 'CONNACK'), { connection: 2 })
  t.notOk(lines.some(({ text }) => text?.includes('bystander')))
})

t.test('a refused log-in is shown with the reason, whatever is wrong with it', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.subscriber('radio/#')
  const { lines, until } = await followPackets(t, hub, 'player')
  await t.rejects(connect(t, hub, { ...login, password: 'guessed' }, { clientId: 'player' }), { code: 4 })
  await until(isEnd)
  t.match(lines.slice(1), [
    { what: 'open', text: /^from / },
    { packet: 'CONNECT', text: RegExp(`user ${login.username}, with a password$`) },
    { what: 'note', text: 'log-in refused: credentials' },
    { packet: 'CONNACK', returnCodes: [4] },
    { what: 'end' },
  ])
  t.notOk(JSON.stringify(lines).includes('guessed'))

  // MQTT 5 has properties before the client id.
  await t.rejects(connect(t, hub, login, { clientId: 'player', protocolVersion: 5 }))
  await until((line) => isEnd(line) && line.connection === 2)
  t.match(lines.slice(6), [
    { what: 'open' },
    { packet: 'CONNECT', text: /^MQTT 5, clean session/ },
    { packet: 'CONNACK', returnCodes: [1] },
    { what: 'end', text: 'the hub closed it: version, not MQTT 3.1.1' },
  ])
})

t.test('hostile client ids and packets are shown as they are, and harm nobody', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.subscriber('radio/#')
  const ca = readFileSync(hub.caPath)
  for (const clientId of ['__proto__', '\u202e"}\n\u001b[2J', '💥'.repeat(50), '0']) {
    const { until } = await followPackets(t, hub, clientId)
    const client = await rawClient(t, hub.mqttPort, ca)
    await client.connect({ clientId, username: login.username, password: Buffer.from(login.password) })
    client.send(Buffer.from('f000', 'hex'))
    await client.closed()
    t.match(await until(isEnd), { text: /^the hub closed it: protocol, / })
  }
  const { until } = await followPackets(t, hub, 'cut')
  for (const packet of [
    '10 10 0004 4d515454 04 ce 0000 0003 637574 00',
    '10 0f 0004 4d515454 05 02 0000 ff ff ff ff',
  ]) {
    const client = await rawClient(t, hub.mqttPort, ca)
    client.send(Buffer.from(packet.replaceAll(' ', ''), 'hex'))
    await client.closed()
  }
  t.match(await until(({ packet }) => packet === 'CONNECT'), {
    text: /^MQTT 4, clean session, keep alive 0 s/,
  })
  await t.rejects(hub.ask('trace', { clientId: '' }), { message: /clientId must be/ })
  await t.rejects(hub.ask('trace', { clientId: 'a', for: 3601 }), {
    message: /for must be a number of seconds/,
  })
  await t.rejects(hub.ask('trace', { clientId: 'a', for: 21, whole: true }), {
    message: /at most 20 seconds/,
  })
})

t.test('a flood is cut short, and the end is shown all the same', async (t) => {
  const hub = await startTestHub(t)
  const { username, password } = await hub.subscriber('radio/#')
  const { lines, until } = await followPackets(t, hub, 'flood')
  const client = await rawClient(t, hub.mqttPort, readFileSync(hub.caPath))
  await client.connect({ clientId: 'flood', username, password: Buffer.from(password) })
  const total = 20_000
  client.send(Buffer.from('c000'.repeat(total), 'hex'), { cmd: 'disconnect' })
  await client.closed()
  await until(isEnd)
  const shown = lines.filter(({ packet }) => packet?.startsWith('PING')).length
  const leftOut = lines.reduce((sum, line) => sum + (line.leftOut ?? 0), 0)
  t.equal(shown + leftOut, 2 * total, 'those left out are counted')
  t.ok(shown < total / 2, `${shown} are shown`)
})

t.test('a reader that stops reading costs little, and others have room when it is gone', async (t) => {
  const hub = await startTestHub(t)
  const { username, password } = await hub.subscriber('radio/#')
  const readers = []
  for (let times = 0; times < 20; times++)
    readers.push(await openLines(t, hub, '/trace', { clientId: 'flood', for: 3600 }))
  for (let times = 0; times < 200; times++) {
    if (times % 50 === 0) await delay(1)
    const refused = hub.ask('trace', { clientId: 'flood', for: 1, whole: true })
    await t.rejects(refused, { message: 'there are too many traces already: wait for one to end' })
  }
  const client = await rawClient(t, hub.mqttPort, readFileSync(hub.caPath))
  await client.connect({ clientId: 'flood', username, password: Buffer.from(password) })
  for (let times = 0; times < 20; times++) {
    client.send(Buffer.from('c000'.repeat(1_000), 'hex'))
    await delay(20)
  }
  client.send({ cmd: 'disconnect' })
  await client.closed()
  for (const reader of readers) reader.destroy()
  await hub.until(async () => {
    const lines = await hub
      .ask<TraceLine[]>('trace', { clientId: 'a', for: 0.1, whole: true })
      .catch(() => [])
    return lines.at(-1)?.what === 'over'
  })
})

t.test('a trace whose reader leaves before its first line takes no room', async (t) => {
  const { broker } = await openBroker(t)
  for (let times = 0; times < 50; times++) {
    const lines = broker.tracePackets('c', 60_000)
    t.ok(lines, `trace ${times} has room`)
    await lines?.return?.()
  }
})

t.test('a node that closes waits for no trace, and shows the last packets', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.subscriber('radio/#')
  const followed = await followPackets(t, hub, 'player')
  const whole = hub.ask<TraceLine[]>('trace', { clientId: 'player', for: 20, whole: true })
  const traces = async () =>
    (await hub.ask<{ action: string }[]>('audit')).filter(({ action }) => action === 'trace')
  await hub.until(async () => (await traces()).length === 2)
  // The audit log has a trace before it begins. Its entries are written in turn: behind this one, `whole` has begun.
  await hub.ask('trace', { clientId: 'other', for: 0.1, whole: true })
  await connect(t, hub, login, { clientId: 'player' })
  await hub.close()
  for (const lines of [followed.lines, await whole])
    t.same(
      lines.map(({ what, packet }) => packet ?? what),
      ['trace', 'open', 'CONNECT', 'CONNACK'],
    )
})

onStore('redis', 'a client is shown on whichever node it is', async (t, env) => {
  const [here, there] = [await startTestHub(t, env), await startTestHub(t, env)]
  const login = await here.subscriber('radio/#')
  await there.until(async () => (await there.ask<unknown[]>('credentials.list')).length === 1)
  const { lines, until } = await followPackets(t, here, 'player')
  const { client } = await connect(t, there, login, { clientId: 'player' })
  await client.subscribeAsync('radio/#')
  await until(({ packet }) => packet === 'SUBACK')
  t.same(packetsOf(lines), ['in CONNECT', 'out CONNACK', 'in SUBSCRIBE', 'out SUBACK'])

  // It moves to the other node, and the trace with it.
  await connect(t, here, login, { clientId: 'player' })
  t.match(await until(isEnd), { text: /takeover/ })
  await until(() => lines.filter(({ packet }) => packet === 'CONNACK').length === 2)
  await there.close()
  t.match(await until(({ what }) => what === 'silent'), { text: /^it has ended/ })
})

t.test(
  'workers are traced together, and one that stands still is named',
  { skip: withoutRedis },
  async (t) => {
    const { hub, ask, subscriber } = await startWorkers(t)
    const login = await subscriber('radio/#')
    // The primary gives connections to the admin socket to whichever worker is free: both may lead to one.
    const followed = await followPackets(t, hub, 'player')
    const asked = followed.lines[0]?.node ?? ''
    const other = await followPackets(t, hub, 'player')
    await connect(t, hub, login, { clientId: 'player' })
    for (const { until } of [followed, other]) await until(({ packet }) => packet === 'CONNACK')
    const [{ node = '' } = {}] = await ask<{ node: string }[]>('clients.list')
    for (const { lines } of [followed, other])
      t.equal(lines.find(({ packet }) => packet === 'CONNECT')?.node, node)
    const still = workersOf(hub).find((pid) => !asked.endsWith(`:${pid}`)) ?? 0
    process.kill(still, 'SIGSTOP')
    const ofStill = (line: TraceLine) => line.what === 'silent' && line.node.endsWith(`:${still}`)
    t.match(await followed.until(ofStill), { text: /does not answer/ })
    const short = ask<TraceLine[]>('trace', { clientId: 'player', for: 1, whole: true })
    process.kill(still, 'SIGCONT')
    await followed.until(({ text }) => text === 'it answers again')
    t.equal((await short).at(-1)?.what, 'over', 'a trace ends when its time is over')
  },
)
