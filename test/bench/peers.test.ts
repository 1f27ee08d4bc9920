import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { startChild } from '../../bench/child.ts'
import { openLightClient } from '../../bench/load/light-client.ts'
import { publishPacket, subscribePacket } from '../../bench/load/packets.ts'
import type { commands as bareWebhooks } from '../../bench/peers/bare-webhooks-process.ts'
import { prepareGround } from '../../bench/peers/ground.ts'
import { startMosquitto, usageOfProcess } from '../../bench/peers/installed.ts'
import { startBareFastify, startBareSockets, startFloor } from '../../bench/peers/ours.ts'
import type { Peer, StartPeer } from '../../bench/peers/peer.ts'
import { onSlowDisk } from '../../bench/slow-disk.ts'
import { playing } from '../events.ts'

const syncMs = 400

t.test('the floor sends PUBACK after the sync, and to subscribers before', async (t) => {
  const { publisher, subscriber, event } = await onPeer(t, (ground) => startFloor(ground, onSlowDisk(syncMs)))
  let isAhead = false
  // A busy machine may take longer than the disk, but not each time.
  for (let id = 1; id <= 10 && !isAhead; id++) {
    const sent = performance.now()
    publisher.publish(id, event)
    let isAcknowledged = false
    const puback = publisher.next().then((packet) => {
      isAcknowledged = true
      return packet.toString('hex')
    })
    await subscriber.next()
    isAhead = !isAcknowledged
    t.equal(await puback, `4002000${id.toString(16)}`)
    t.ok(performance.now() - sent >= syncMs, 'PUBACK waits for the disk')
  }
  t.ok(isAhead, 'the message does not wait for the disk')
})

t.test('the floor refuses what the hub refuses, and acknowledges in order', async (t) => {
  const { publisher, subscriber, event } = await onPeer(t, (ground) => startFloor(ground))
  publisher.publish(1, event, Buffer.from('{"event":"nothing"}'), event)
  for (const id of [1, 2, 3]) t.equal((await publisher.next()).readUInt16BE(2), id)
  for (const _ of [1, 3]) t.ok((await subscriber.next()).includes(event))
})

t.test('bare sockets read the PUBACKs of subscribers at QoS 1', async (t) => {
  const { peer, publisher, subscriber, event } = await onPeer(t, (ground) => startBareSockets(ground, 1))
  publisher.publish(1, event, event)
  for (const id of [1, 2]) {
    const message = await subscriber.next()
    t.equal(message[0], 0x32, 'a PUBLISH of QoS 1')
    t.equal(message.readUInt16BE(message.indexOf(event) - 2), id)
    subscriber.write(Buffer.of(0x40, 2, 0, id))
  }
  while ((await peer.pubacks?.()) !== 2);
})

t.test('bare sockets send QoS 0 where nothing else is asked of them', async (t) => {
  const { publisher, subscriber, event } = await onPeer(t, (ground) => startBareSockets(ground, 0))
  publisher.publish(1, event)
  t.equal((await subscriber.next())[0], 0x30)
})

t.test('bare Fastify answers after the sync, and refuses what the hub refuses', async (t) => {
  const ground = await prepareGround()
  t.teardown(ground.remove)
  const { port, stop } = await startBareFastify(ground, onSlowDisk(syncMs))
  t.teardown(stop)
  const [livestream] = ground.institutions[0]?.livestreams ?? []
  if (!livestream) throw new Error('the feed is empty')
  const event = playing(livestream)
  const post = async (body: object) => {
    const headers = { 'content-type': 'application/json' }
    const path = `/events/${event.event}`
    const sent = request({ host: 'localhost', port, ca: ground.ca, path, method: 'POST', headers })
    sent.end(JSON.stringify(body))
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return { status: answer.statusCode, ...JSON.parse(await text(answer)) }
  }
  const began = performance.now()
  t.match(await post(event), { status: 201, statuses: { published: 1 }, event })
  t.ok(performance.now() - began >= syncMs)
  t.match(await post({ ...event, title: 7 }), { status: 400, errors: [{ errorCode: String }] })
})

t.test('the bare client posts what the hub would post', async (t) => {
  const ground = await prepareGround()
  t.teardown(ground.remove)
  const { cert, key, ca } = ground.certificate
  const seen: { authorization: string; titles: string }[] = []
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) })
  const all = new Promise<void>((resolve) => {
    server.on('request', async (received, answer) => {
      const { message } = JSON.parse(await text(received))
      const titles = Buffer.from(message.data, 'base64').toString()
      seen.push({ authorization: String(received.headers.authorization), titles })
      answer.writeHead(204).end(() => seen.length === 4 && resolve())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.closeAllConnections())
  t.teardown(() => server.close())
  const url = `https://localhost:${(server.address() as AddressInfo).port}/ok`
  const client = await startChild<typeof bareWebhooks>('peers/bare-webhooks-process.ts')
  t.teardown(client.stop)
  await client.ask('start', { url, ca, count: 2 })
  for (const payload of ['"first"', '"second"']) await client.ask('push', { payload })
  await all
  t.strictSame(seen.map(({ titles }) => titles).sort(), ['"first"', '"first"', '"second"', '"second"'])
  for (const { authorization } of seen) {
    const token = authorization.replace('Bearer ', '')
    t.equal(decodeProtectedHeader(token).alg, 'RS256')
    t.equal(decodeJwt(token).aud, url)
  }
  t.equal(await client.ask('failures', {}), 0)
})

t.test('the CPU time of Mosquitto includes that of its validator', async (t) => {
  const { peer } = await onPeer(t, startMosquitto)
  const cpuOf = async (pid = 0) => (await usageOfProcess(pid)).cpuMs
  const [broker, validator] = await Promise.all(peer.pids.map(cpuOf))
  t.ok(Number(validator) > 0)
  // Two clocks of the kernel, which may differ a little.
  t.ok((await peer.usage()).cpuMs > Number(broker) + Number(validator) * 0.8)
})

t.test('the usage of a process can be read while threads of it end', async (t) => {
  let live = 0
  for (let number = 0; number < 40; number++, live++) new Worker('', { eval: true }).on('exit', () => live--)
  while (live > 0) {
    t.ok((await usageOfProcess(process.pid)).cpuMs > 0)
    await setImmediate()
  }
})

/** Starts a peer with a publisher and a subscriber at QoS 1. */
async function onPeer(t: Test, start: StartPeer) {
  const ground = await prepareGround()
  t.teardown(ground.remove)
  const peer = await start(ground)
  if (!peer) throw new Error('the peer is not installed')
  t.teardown(peer.stop)
  const [livestream] = ground.institutions[0]?.livestreams ?? []
  if (!livestream) throw new Error('the feed is empty')
  const publisher = await connect(t, peer, 'publisher')
  const subscriber = await connect(t, peer, 'subscriber')
  subscriber.write(subscribePacket(1, 'radio/#', 1))
  await subscriber.next()
  return { peer, publisher, subscriber, event: Buffer.from(JSON.stringify(playing(livestream))) }
}

/** A client that keeps the packets it gets. */
async function connect(t: Test, { address }: Peer, clientId: string) {
  const packets: Buffer[] = []
  let told = () => {}
  const client = await openLightClient({
    address,
    clientId,
    clean: true,
    login: undefined,
    onPacket(bytes, start, _body, end) {
      packets.push(Buffer.from(bytes.subarray(start, end)))
      told()
    },
  })
  t.teardown(() => client.socket.destroy())
  return {
    write: (bytes: Buffer) => client.socket.write(bytes),
    /** Sends events in one piece, with packet identifiers from `firstId` on. */
    publish(firstId: number, ...events: Buffer[]): void {
      client.socket.write(
        Buffer.concat(events.map((event, index) => publishPacket('inbox/x', firstId + index, event))),
      )
    },
    /** The next packet. */
    async next(): Promise<Buffer> {
      for (;;) {
        const packet = packets.shift()
        if (packet) return packet
        await new Promise<void>((resolve) => {
          told = resolve
        })
      }
    },
  }
}
