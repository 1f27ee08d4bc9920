import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connectPublisher } from '../../../client/node.ts'
import { openScriptedBroker } from '../../client/scripted-broker.ts'
import { type Arrived, connect } from '../../clients.ts'
import { startProgram } from '../../documentation.ts'
import { control, institutions, playing, station } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { onRedis } from '../../redis-server.ts'
import { projectFile } from '../../root.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, type Issued, temporaryDirectory } from '../../start-hub.ts'

/*
 * The publisher of the client package against whole nodes: what is acknowledged is not lost, and each event has one
 * result, whoever is killed (open.md §1).
 */

const [own = ''] = institutions

t.test(
  'a node that is killed under load loses no acknowledged event, and none has two results',
  async (t) => {
    const home = await temporaryDirectory(t)
    const env = { HUB_MQTT_PORT: `${await freePort()}`, HUB_PUBLISH_RATE: '0', HUB_QUEUE_LIMIT: '100000' }
    let hub = await spawnHub(t, home, env)
    const arrived = await listen(t, hub)
    const publisher = await open(t, hub)
    const ids = new Map<number, string[]>()
    let next = 0
    let isOver = false
    const load = Array.from({ length: 40 }, async () => {
      while (!isOver) {
        const marker = next++
        const report = await publisher.publish(control(station(), { name: `state-${marker % 10}`, marker }))
        if (report.outcome === 'published') ids.set(marker, [...(ids.get(marker) ?? []), report.id ?? ''])
      }
    })
    for (let round = 0; round < 4; round++) {
      const enough = ids.size + 150
      while (ids.size < enough) await new Promise((resolve) => setTimeout(resolve, 5))
      await hub.stop('SIGKILL')
      hub = await spawnHub(t, home, env)
    }
    isOver = true
    await Promise.all(load)
    await publisher.publish(control(station(), { name: 'last', marker: -1 }))
    await arrived((markers) => markers.has(-1))
    await arrived((markers) => [...ids.keys()].every((marker) => markers.has(marker)))
    t.ok(ids.size >= 600, `${ids.size} events`)
    t.equal(ids.size, next, 'each has a report')
    t.same(
      [...ids.values()].filter((own) => own.length !== 1),
      [],
      'and only one',
    )
  },
)

t.test(
  'the packet id of an event that still waits is given to no other, also after 65,535 of them',
  async (t) => {
    const held: (() => void)[] = []
    const broker = await openScriptedBroker(t, ({ packet, proceed }) => {
      if (packet.cmd === 'publish' && packet.payload.includes('The first one')) held.push(proceed)
      else proceed()
    })
    const publisher = connectPublisher({
      url: broker.url,
      ca: broker.ca,
      username: 'u',
      password: 'p',
      institution: own,
    })
    t.teardown(() => publisher.close(0))
    const first = publisher.publish(playing(station(), { title: 'The first one' }))
    for (let round = 0; round < 140; round++) {
      const events = Array.from({ length: 480 }, (_, nth) =>
        control(station(), { marker: round * 480 + nth }),
      )
      await Promise.all(events.map(publisher.publish))
    }
    const [waiting] = broker.published
    const others = broker.published.filter((packet) => packet.messageId === waiting?.messageId)
    t.equal(others.length, 1)
    for (const proceed of held) proceed()
    t.match(await first, { outcome: 'published' })
  },
)

t.test('a process that is killed with an outbox loses nothing that it had taken in', async (t) => {
  const home = await temporaryDirectory(t)
  const hub = await spawnHub(t, home, { HUB_PUBLISH_RATE: '0', HUB_QUEUE_LIMIT: '100000' })
  const arrived = await listen(t, hub)
  const outbox = join(home, 'outbox')
  const options = { ...(await optionsFor(hub)), outbox }
  const settled = new Map<number, string>()
  const restored = new Set<number>()
  for (let round = 0, isLast = false; !isLast; round++) {
    // Between two bursts the outbox is empty: a kill that comes there shows nothing.
    isLast = round >= (restored.size > 0 ? 6 : 30)
    const argument = JSON.stringify({ ...options, first: round * 1000, rounds: isLast ? 1 : 1000 })
    const program = startProgram(
      t,
      [process.execPath, '--import=tsx', projectFile('test/soak/client/publisher-process.ts'), argument],
      { cwd: projectFile('.'), env: { PATH: process.env.PATH ?? '' } },
    )
    // Each kill hits another step.
    if (!isLast) {
      await program.line(new RegExp(`^settled ${round * 1000 + 11 * round} published`))
      program.kill()
    }
    await program.ended
    for (const line of program.lines) {
      const [word, number, outcome] = line.split(' ')
      if (word === 'settled') settled.set(Number(number), outcome ?? '')
      else if (word === 'restored') restored.add(Number(number))
    }
  }
  t.ok(restored.size > 0, `${restored.size} were in the outbox`)
  t.same(
    [...restored].filter((number) => !settled.has(number)),
    [],
    'each of them has a result in the end',
  )
  t.same(
    [...settled].filter(([, outcome]) => outcome !== 'published'),
    [],
  )
  await arrived((markers) => [...settled.keys()].every((number) => markers.has(number)))
})

t.test('10,000 publishes at once get 10,000 reports', async (t) => {
  const hub = await spawnHub(t, await temporaryDirectory(t), { HUB_PUBLISH_RATE: '0' })
  const publisher = await open(t, hub)
  const reports = await Promise.all(
    Array.from({ length: 10_000 }, (_, number) =>
      publisher.publish(playing(station(), { playlistItemId: `${number}` })),
    ),
  )
  t.same(
    reports.map((report) => 'playlistItemId' in report && report.playlistItemId),
    reports.map((_, number) => `${number}`),
  )
})

for (const hours of [-1, 1]) {
  t.test(`a clock that is ${hours} hour off changes nothing`, async (t) => {
    const hub = await spawnHub(t, await temporaryDirectory(t))
    const { now } = Date
    t.teardown(() => {
      Date.now = now
    })
    Date.now = () => now() + hours * 3_600_000
    const outbox = join(await temporaryDirectory(t), 'outbox')
    const publisher = await open(t, hub, { outbox })
    const start = new Date(Date.now()).toISOString()
    t.match(await publisher.publish(playing(station(), { start })), { outcome: 'published' })
    // The hub judges by its own clock, and says so.
    const state = publisher.publish(control(station()))
    if (hours > 0) t.match(await state, { outcome: 'published' })
    else await t.rejects(state, { name: 'EventRefused', message: /validUntil/ })
  })
}

onRedis('while the store is away for 30 s, events wait, and are settled once', async (t, redis) => {
  const env = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://localhost:8443', HUB_PUBLISH_RATE: '0' }
  const hub = await spawnHub(t, await temporaryDirectory(t), env)
  const arrived = await listen(t, hub)
  const publisher = await open(t, hub)
  await publisher.publish(control(station(), { marker: -1 }))
  redis.pause()
  const back = new Promise((resolve) => setTimeout(resolve, 30_000)).then(() => redis.resume())
  const published = Array.from({ length: 100 }, (_, marker) =>
    publisher.publish(control(station(), { name: `state-${marker}`, marker })),
  )
  const reports = await Promise.all(published)
  await back
  t.same([...new Set(reports.map(({ outcome }) => outcome))], ['published'])
  t.equal(new Set(reports.map((report) => 'id' in report && report.id)).size, 100)
  await arrived((markers) =>
    Array.from({ length: 100 }, (_, marker) => marker).every((marker) => markers.has(marker)),
  )
})

type Hub = Awaited<ReturnType<typeof spawnHub>>

async function optionsFor(hub: Hub) {
  const login = await issue(hub, { role: 'publisher', label: 'p', institutions: [own] })
  const { username, password } = login
  return { url: `mqtts://localhost:${hub.mqttPort}`, username, password, ca: hub.caPath, institution: own }
}

async function open(t: Test, hub: Hub, options: { outbox?: string } = {}) {
  const publisher = connectPublisher({ ...(await optionsFor(hub)), ...options, onProblem: () => {} })
  t.teardown(() => publisher.close(0))
  return publisher
}

/** A subscriber that comes back. Resolves when the markers of what arrived are as the test wants them. */
async function listen(t: Test, hub: Hub) {
  const login = await issue(hub, { role: 'subscriber', label: 's', filters: ['radio/#'] })
  const options = { clientId: 'listener', clean: false, reconnectPeriod: 200 }
  const { client, received } = await connect(t, hub, login, options)
  await client.subscribeAsync('radio/+/control', { qos: 1 })
  const markers = new Set<number>()
  let next = 0
  return async (holds: (markers: ReadonlySet<number>) => boolean) => {
    while (!holds(markers)) {
      const arrived: Arrived = await received.until(() => true, next++)
      markers.add(Number(arrived.json.marker))
    }
  }
}

function issue({ adminSocket }: Hub, request: Record<string, unknown>): Promise<Issued> {
  return askNode(adminSocket, 'credentials.add', request)
}
