import { readFile } from 'node:fs/promises'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { connect } from '../../clients.ts'
import { openStream, type StreamReader } from '../../event-stream.ts'
import { control, institutions, station } from '../../events.ts'
import { withoutRedis } from '../../redis-server.ts'
import { until } from '../../until.ts'
import { areBack, startWorkers, workersOf } from './start-workers.ts'

/*
 * Limits hold for all workers together (`HUB_WORKERS`).
 */

const [own = ''] = institutions
const livestream = station()

t.test('limits of connections, behind a load balancer', { skip: withoutRedis }, async (t) => {
  const limits = {
    HUB_MAX_CONNECTIONS: '6',
    HUB_MAX_CONNECTIONS_PER_ADDRESS: '4',
    HUB_PROXY_PROTOCOL: 'true',
    HUB_CONNECT_TIMEOUT: '300',
  }
  const { hub } = await startWorkers(t, limits)
  const ca = await readFile(hub.caPath)
  const open: TLSSocket[] = []
  const enter = async (address: string) => {
    const socket = await connectThrough(t, { port: hub.mqttPort, ca, address })
    if (socket) open.push(socket)
    return socket !== undefined
  }
  const isRefused = (address: string) =>
    inBoth(async () => {
      const socket = await connectThrough(t, { port: hub.mqttPort, ca, address })
      socket?.destroy()
      return socket === undefined
    })
  for (let times = 0; times < 4; times++) t.ok(await enter('192.0.2.1'))
  await isRefused('192.0.2.1')
  // A connection that was refused keeps its place among all until it has ended.
  for (let times = 0; times < 2; times++) await until(() => enter('192.0.2.2'))
  await isRefused('192.0.2.3')
  open.pop()?.destroy()
  open.pop()?.destroy()
  await until(() => enter('192.0.2.3'))

  // A worker that dies frees its places.
  for (const pid of workersOf(hub)) process.kill(pid, 'SIGKILL')
  await until(() => areBack(hub, 2))
  for (let times = 0; times < 4; times++) t.ok(await enter('192.0.2.1'))
  await isRefused('192.0.2.1')
})

t.test('streams of readers', { skip: withoutRedis }, async (t) => {
  const { hub } = await startWorkers(t, { HUB_MAX_STREAMS: '3', HUB_PUBLIC_PAGE: 'true' })
  const path = `/livestreams/${livestream.id}/stream`
  const enter = async () => {
    const reader = await openStream(t, hub, path)
    await reader.until(() => reader.hasEnded() || reader.named('ready').length > 0)
    if (reader.named('ready').length > 0) return reader
    t.match(reader.events, [{ event: 'bye' }], 'there is no room')
    return undefined
  }
  const readers: (StreamReader | undefined)[] = []
  for (let times = 0; times < 3; times++) readers.push(await enter())
  t.notOk(readers.includes(undefined))
  await inBoth(async () => {
    const reader = await enter()
    reader?.close()
    return reader === undefined
  })
  readers.pop()?.close()
  await until(async () => (await enter()) !== undefined)
})

t.test('the publish rate of a credential', { skip: withoutRedis }, async (t) => {
  const rate = 20
  const { hub, ask, publisher } = await startWorkers(t, { HUB_PUBLISH_RATE: String(rate) })
  const each = 80
  // A full bucket holds twice the rate. Workers tell each other after a tenth of a second what they took. On a busy machine
  // that may take a second, but not each time.
  const burst = 2 * rate
  let lowest = Infinity
  for (let round = 0; round < 5 && lowest >= 1.5 * rate; round++) {
    const login = await publisher([own])
    const studios = [await connect(t, hub, login), await connect(t, hub, login)]
    const clients = await ask<{ node: string; username: string }[]>('clients.list')
    const nodes = clients.filter(({ username }) => username === login.username).map(({ node }) => node)
    t.equal(new Set(nodes).size, 2, 'one is at each worker')
    const began = performance.now()
    await Promise.all(
      studios.flatMap(({ client }, studio) =>
        Array.from({ length: each }, (_, index) =>
          client.publishAsync(
            `inbox/${own}`,
            JSON.stringify({ ...control(livestream), name: `${studio}-${index}` }),
            { qos: 1 },
          ),
        ),
      ),
    )
    const seconds = (performance.now() - began) / 1000
    t.comment(`${2 * each} events in ${seconds.toFixed(1)} s`)
    lowest = Math.min(lowest, (2 * each - burst) / seconds)
  }
  t.ok(lowest < 1.5 * rate, 'it is not that of two')
})

/**
 * Resolves when something holds for four connections in a row, of which both workers get some. A worker hears of the
 * connections of the other some milliseconds later, and until then it lets too many in.
 */
function inBoth(holds: () => Promise<boolean>): Promise<void> {
  return until(async () => {
    for (let times = 0; times < 4; times++) if (!(await holds())) return false
    return true
  })
}

/** Connects like a load balancer, for a client with this address. Undefined: the hub lets it not in. */
function connectThrough(
  t: Test,
  { port, ca, address }: { port: number; ca: Buffer; address: string },
): Promise<TLSSocket | undefined> {
  const socket = connectTcp({ port, host: '127.0.0.1' })
  socket.write(`PROXY TCP4 ${address} 127.0.0.1 5000 ${port}\r\n`)
  const tls = connectTls({ socket, servername: 'localhost', ca })
  t.teardown(() => tls.destroy())
  return new Promise((resolve) => {
    tls.once('secureConnect', () => resolve(tls))
    tls.once('error', () => resolve(undefined))
    tls.once('close', () => resolve(undefined))
  })
}
