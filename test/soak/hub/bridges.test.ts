import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import t, { type Test } from 'tap'
import { connect, connectPublisher } from '../../clients.ts'
import { subscribe } from '../../conformance/peers.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { control, controlTopic, playing, playingTopic, station } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { rawClient } from '../../raw-client.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onStore } from '../../stores.ts'

/* A house whose own mosquitto is connected to the hub, with the configuration of docs/bridges.md. */

const withoutMosquitto =
  spawnSync('mosquitto', ['-h']).error === undefined
    ? false
    : 'NOT TESTED: there is no mosquitto (apt-get install mosquitto)'

const livestream = station(0, 0)
const institution = livestream.institution.id

t.test('mosquitto as a bridge, both ways, over restarts of both', { skip: withoutMosquitto }, async (t) => {
  const home = await temporaryDirectory(t)
  const env = { HUB_MQTT_PORT: String(await freePort()) }
  let hub = await startTestHub(t, env, home)
  const reader = await hub.subscriber('radio/#')
  const writer = await hub.publisher([institution])
  const other = await connectPublisher(t, hub, writer, institution)
  const house = await openHouse(t, hub, { reader, writer })
  let mosquitto = await house.start()
  let local = await house.look(t)

  await other.publish(playing(livestream, { title: 'before', start: at(0) }))
  await local.next(playingTopic(livestream), 'before')
  t.equal(await house.retainedTitle(t), 'before', 'a live title is what the house keeps')
  await other.publish(playing(livestream, { title: 'late', start: at(-60) }))
  await local.next(playingTopic(livestream), 'late')
  t.equal(await house.retainedTitle(t), 'before', 'an older one that came late is not')

  await local.publish(`inbox/${institution}`, playing(livestream, { title: 'of the house', start: at(1) }))
  const report = await local.next(`feedback/${institution}`, 'published')
  t.equal(report.outcome, 'published')
  await local.next(playingTopic(livestream), 'of the house')
  t.equal(await house.retainedTitle(t), 'of the house')

  await mosquitto.stop()
  await other.publish(playing(livestream, { title: 'while the house was away', start: at(2) }))
  await other.publish(control(livestream, { name: 'state', time: at(0) }))
  mosquitto = await house.start()
  local = await house.look(t)
  await local.next(playingTopic(livestream), 'while the house was away')
  t.equal(await house.retainedTitle(t), 'while the house was away')
  await local.next(controlTopic(livestream), 'state')

  await hub.close()
  await local.publish(
    `inbox/${institution}`,
    playing(livestream, { title: 'the hub was away', start: at(3) }),
  )
  hub = await startTestHub(t, env, home)
  await local.next(playingTopic(livestream), 'the hub was away')
  t.equal(await house.retainedTitle(t), 'the hub was away')

  await hub.ask('retained.clear', { topic: controlTopic(livestream) })
  await local.next(controlTopic(livestream), '')
  t.notOk(
    hub.lines.some(({ msg }) => msg === 'publish denied and dropped'),
    'and nothing was denied',
  )
  const plain = await connect(t, hub, reader)
  await plain.client.subscribeAsync(playingTopic(livestream), { qos: 1 })
  t.equal((await plain.received.until(() => true)).json.title, 'the hub was away')
})

t.test('the notifications of a bridge are dropped, and nobody is told', async (t) => {
  const hub = await startTestHub(t)
  const writer = await hub.publisher([institution])
  const reports = await connect(t, hub, writer)
  await reports.client.subscribeAsync(`feedback/${institution}`, { qos: 1 })
  for (const login of [writer, await hub.subscriber('radio/#')]) {
    const topic = '$SYS/broker/connection/house.radio/state'
    const client = await rawClient(t, hub.mqttPort, await readFile(hub.caPath))
    const { returnCode } = await client.connect({
      clientId: `house-${login.username}`,
      clean: false,
      bridgeMode: true,
      username: login.username,
      password: Buffer.from(login.password),
      will: { topic, payload: Buffer.from('0'), qos: 1, retain: true },
    })
    t.equal(returnCode, 0)
    client.send({ cmd: 'publish', topic, payload: '1', qos: 1, retain: true, dup: false, messageId: 1 })
    await client.next('puback')
    await client.settled()
    client.socket.destroy()
  }
  const publisher = await connectPublisher(t, hub, writer, institution)
  await publisher.publish(playing(livestream))
  t.equal((await reports.received.until(() => true)).json.outcome, 'published', 'the first report')
  t.notOk(hub.lines.some(({ msg }) => msg === 'publish denied and dropped'))
})

onStore('redis', 'a bridge on one node is told of what an operator clears on another', async (t, store) => {
  const [here, there] = await Promise.all([startTestHub(t, store), startTestHub(t, store)])
  const login = await here.subscriber('radio/#')
  const writer = await here.publisher([institution])
  const client = await rawClient(t, here.mqttPort, await readFile(here.caPath))
  await client.connect({
    clientId: 'house',
    clean: true,
    bridgeMode: true,
    username: login.username,
    password: Buffer.from(login.password),
  })
  subscribe(client, 1, { 'radio/#': 0 })
  await client.next('suback')
  const publisher = await connectPublisher(t, here, writer, institution)
  await publisher.publish(playing(livestream))
  t.equal((await client.next('publish')).retain, true)
  const topic = playingTopic(livestream)
  await there.until(async () => (await there.ask<object[]>('retained.list', { filter: topic })).length === 1)
  await there.ask('retained.clear', { topic })
  const ended = await client.next('publish', 1)
  t.same([ended.topic, ended.payload.length, ended.retain], [topic, 0, true])
})

const began = Date.now()
/** An event time, seconds after the start of the test. */
const at = (seconds: number) => new Date(began + seconds * 1000).toISOString()

type Login = Awaited<ReturnType<TestHub['subscriber']>>

async function openHouse(t: Test, hub: TestHub, { reader, writer }: { reader: Login; writer: Login }) {
  const home = await temporaryDirectory(t)
  const port = await freePort()
  const data = join(home, 'data')
  await mkdir(data)
  const [ofReader = '', ofWriter = ''] = codeBlock(readPage('bridges.md'), 'conf', 'connection radio')
    .replaceAll('hub.example:8883', `localhost:${hub.mqttPort}`)
    .replaceAll('/etc/mosquitto/hub-ca.pem', hub.caPath)
    .replaceAll('urn:org:institution:0123456789abcdef', institution)
    .replace('/var/lib/mosquitto/', `${data}/`)
    .replace('listener 1883', `listener ${port}`)
    // The test waits for each new attempt.
    .replaceAll('restart_timeout 5 30', 'restart_timeout 1 1')
    .split(/^(?=connection inbox)/m)
  const filled = [
    ofReader.replace('sub-house', reader.username).replace('SECRET', reader.password),
    ofWriter.replace('pub-house', writer.username).replace('SECRET', writer.password),
  ]
  const config = join(home, 'mosquitto.conf')
  // As root, mosquitto would become a user that may not read the test's files.
  await writeFile(config, `${process.getuid?.() === 0 ? 'user root\n' : ''}${filled.join('')}`)

  return {
    async start() {
      const child = spawn('mosquitto', ['-c', config], { stdio: ['ignore', 'ignore', 'pipe'] })
      let said = ''
      child.stderr.on('data', (chunk) => {
        said += chunk
      })
      const exited = once(child, 'exit')
      const stop = async () => {
        child.kill('SIGTERM')
        await exited
      }
      t.teardown(stop)
      while (!/mosquitto version .* running/.test(said))
        await Promise.race([once(child.stderr, 'data'), exited])
      return { stop, said: () => said }
    },

    /** A client of the house. */
    async look(t: Test) {
      const client = await connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 })
      t.teardown(() => client.endAsync(true))
      const seen: { topic: string; text: string }[] = []
      const waiting = new Set<() => void>()
      client.on('message', (topic, payload) => {
        seen.push({ topic, text: String(payload) })
        for (const look of waiting) look()
      })
      await client.subscribeAsync(['radio/#', 'feedback/#'], { qos: 1 })
      const next = (topic: string, having: string) =>
        new Promise<Record<string, unknown>>((resolve) => {
          const look = () => {
            const found = seen.find(
              (each) =>
                each.topic === topic && (having === '' ? each.text === '' : each.text.includes(having)),
            )
            if (!found) return
            waiting.delete(look)
            resolve(found.text === '' ? {} : JSON.parse(found.text))
          }
          waiting.add(look)
          look()
        })
      return {
        next,
        publish: (topic: string, event: object) =>
          client.publishAsync(topic, JSON.stringify(event), { qos: 1 }),
      }
    },

    /** The title that a new client of the house gets. */
    async retainedTitle(t: Test): Promise<unknown> {
      const { next } = await this.look(t)
      return (await next(playingTopic(livestream), 'title')).title
    },
  }
}
