import t from 'tap'
import {
  hex,
  openBroker,
  packetsThatClose,
  peer,
  publish,
  publishes,
  subscribe,
  subscriber,
  texts,
} from './peers.ts'

/* Chapters 1 and 2 of MQTT 3.1.1: strings, fixed headers, packet identifiers. */

packetsThatClose('text that is not UTF-8 closes the connection', [
  ['PUBLISH, a surrogate', '30 05 0003 eda080'],
  ['PUBLISH, overlong', '30 04 0002 c080'],
  ['PUBLISH, cut in the middle', '30 03 0001 c3'],
  ['SUBSCRIBE', '82 06 0001 0001 ff 00'],
  ['UNSUBSCRIBE', 'a2 05 0001 0001 ff'],
])

packetsThatClose('U+0000 closes the connection', [
  ['PUBLISH', '30 05 0003 610062'],
  ['SUBSCRIBE', '82 08 0001 0003 610062 00'],
  ['UNSUBSCRIBE', 'a2 07 0001 0003 610062'],
])

t.test('U+FEFF is a character like any other', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { '\ufeffa': 0 })
  client.send(publish('a', 0), publish('\ufeffa', 0))
  await client.settled()
  t.same(texts(client), ['\ufeffa \ufeffa'])
})

packetsThatClose('wrong reserved flags close the connection', [
  ['PUBACK', '41 02 0001'],
  ['PUBREC', '52 02 0001'],
  ['PUBREL', '60 02 0001'],
  ['PUBREL', '63 02 0001'],
  ['PUBCOMP', '72 02 0001'],
  ['SUBSCRIBE', '80 06 0001 0001 61 00'],
  ['SUBSCRIBE', '83 06 0001 0001 61 00'],
  ['UNSUBSCRIBE', 'a0 05 0001 0001 61'],
  ['UNSUBSCRIBE', 'a6 05 0001 0001 61'],
  ['PINGREQ', 'c1 00'],
  ['DISCONNECT', 'e4 00'],
])

packetsThatClose('packet identifier 0 closes the connection', [
  ['PUBLISH at QoS 1', '32 05 0001 61 0000'],
  ['PUBLISH at QoS 2', '34 05 0001 61 0000'],
  ['SUBSCRIBE', '82 06 0000 0001 61 00'],
  ['UNSUBSCRIBE', 'a2 05 0000 0001 61'],
])

t.test('packet identifiers of the broker are unused and not 0, also when they start over', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { '#': 1 })
  client.send(publish('held', 1, 1))
  const held = await client.next('publish')
  const session = broker.broker.sessions.get('c')
  if (session) session.lastPacketId = 65_533
  for (let id = 2; id <= 6; id++) client.send(publish('a', 1, id))
  await client.next('publish', 5)
  t.equal(held.messageId, 1)
  const identifiers = publishes(client).map(({ messageId }) => messageId)
  t.same(identifiers, [1, 65_534, 65_535, 2, 3, 4], 'the one that is not acknowledged is spared')
})

t.test('a PUBLISH at QoS 0 has no packet identifier', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { a: 2 })
  const raw: Buffer[] = []
  client.socket.on('data', (chunk) => raw.push(chunk))
  client.send(publish('a', 0))
  await client.next('publish')
  await client.settled()
  t.equal(Buffer.concat(raw).subarray(0, 6).toString('hex'), hex('30 04 0001 61 61').toString('hex'))
})

t.test('every answer has the identifier of its question', async (t) => {
  const broker = await openBroker(t)
  const client = await peer(t, broker, 'c')
  client.send(publish('a', 1, 0x1234), publish('a', 2, 0x2345))
  t.equal((await client.next('puback')).messageId, 0x1234)
  t.equal((await client.next('pubrec')).messageId, 0x2345)
  client.send({ cmd: 'pubrel', messageId: 0x2345 })
  t.equal((await client.next('pubcomp')).messageId, 0x2345)
  subscribe(client, 0x3456, { b: 2 })
  t.equal((await client.next('suback')).messageId, 0x3456)
  client.send({ cmd: 'unsubscribe', messageId: 0x4567, unsubscriptions: ['b'] })
  t.equal((await client.next('unsuback')).messageId, 0x4567)
})

t.test('a client may use any identifier that is free, in both directions at once', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { a: 1 })
  client.send(publish('a', 1, 1))
  const { messageId } = await client.next('publish')
  t.equal((await client.next('puback')).messageId, 1)
  t.equal(messageId, 1, 'the broker counts on its own')
  client.send({ cmd: 'puback', messageId: 1 })
  await client.settled()
  t.equal(publishes(client).length, 1)
})
