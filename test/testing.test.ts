import { execFile } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connectAsync } from 'mqtt'
import t from 'tap'
import { connectPublisher } from '../client/node.ts'
import { createTestHub } from '../testing.ts'
import { openClient } from './bridge-https/api.ts'
import { playing, station } from './events.ts'
import { patienceMs } from './patience.ts'
import { commandOf } from './root.ts'
import { temporaryDirectory } from './start-hub.ts'

const run = promisify(execFile)
const item = {
  id: 'urn:org:permanent-livestream:one',
  type: 'PermanentLivestream',
  externalId: 'crid://own.example/1',
  title: 'One',
  publisher: {
    id: 'urn:org:publisher:own',
    externalId: '1',
    title: 'Own',
    institution: { id: 'urn:org:institution:own', title: 'Own Radio', acronym: 'OWN' },
  },
}

t.test('an event goes from a publisher of the test hub to its subscriber', async (t) => {
  const hub = await createTestHub({ feed: [item] })
  t.teardown(hub.close)
  t.equal(hub.url, `mqtts://localhost:${hub.mqttPort}`)
  t.equal(hub.httpsUrl, `https://localhost:${hub.httpsPort}`)
  const [publisher, subscriber] = await Promise.all([hub.addPublisher(), hub.addSubscriber()])
  const { institution } = item.publisher
  t.equal(publisher.institution, institution.id, 'of the first livestream')

  const [reader, writer] = await Promise.all([connect(subscriber), connect(publisher)])
  const arrived = new Promise((resolve) => {
    reader.on('message', (topic, payload) => resolve({ topic, event: JSON.parse(payload.toString()) }))
  })
  await reader.subscribeAsync('radio/#', { qos: 1 })
  const event = playing({ ...item, institution }, { title: 'Ebbe und Flut' })
  await writer.publishAsync(`inbox/${institution.id}`, JSON.stringify(event), { qos: 1 })
  t.match(await arrived, { topic: `radio/${item.id}/track/playing`, event: { title: 'Ebbe und Flut' } })
  await Promise.all([reader.endAsync(), writer.endAsync()])

  function connect({ username, password }: { username: string; password: string }) {
    return connectAsync(hub.url, { ca: hub.ca, username, password, protocolVersion: 4 }, false)
  }
})

t.test('a restart loses connections, and nothing else', async (t) => {
  const hub = await createTestHub()
  t.teardown(hub.close)
  const { username, password, institution } = await hub.addPublisher()
  const { url, ca } = hub
  const told: string[] = []
  const publisher = connectPublisher({
    url,
    ca,
    username,
    password,
    institution,
    onProblem: ({ code }) => told.push(code),
    onConnected: () => told.push('connected'),
  })
  t.teardown(() => publisher.close(0))
  const event = playing(station())
  const before = await publisher.publish(event)
  await hub.restart()
  const after = await publisher.publish(event)
  t.match(before, { outcome: 'published', id: /./ })
  t.match(after, { outcome: 'published', id: 'id' in before ? before.id : '' }, 'the hub knows it again')
  t.equal(told.at(-1), 'connected')
  t.ok(told.slice(0, -1).every((code) => code === 'connection.lost'))
  t.match(await hub.addPublisher(), { institution })
  await publisher.close()
  const again = hub.restart()
  await Promise.all([again, hub.close()])
  await t.rejects(hub.restart(), /closed/)
})

t.test('a login of the test hub is one of the HTTPS API too', async (t) => {
  const hub = await createTestHub()
  t.teardown(hub.close)
  const { institution } = station(1)
  const publisher = await hub.addPublisher(institution.id)
  t.equal(publisher.institution, institution.id)
  const caPath = join(await temporaryDirectory(t), 'ca.pem')
  await writeFile(caPath, hub.ca)
  const send = openClient(t, { httpsPort: hub.httpsPort, caPath })
  const { email, password } = publisher
  const logIn = (body: object) => send('POST', '/auth/login', { body })
  t.equal((await logIn({ email, password })).status, 200)
  t.equal((await logIn({ email, password: 'another' })).status, 401)
  await t.rejects(hub.addPublisher('Own Radio'), /institution URN/)
  await t.rejects(hub.addSubscriber('inbox/#'), /radio/)
})

t.test('wrong options are named, and leave nothing', async (t) => {
  const home = await temporaryDirectory(t)
  const { TMPDIR } = process.env
  process.env.TMPDIR = home
  t.teardown(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  })
  await t.rejects(createTestHub({ feed: [] }), /feed: .*at least one livestream/)
  await t.rejects(createTestHub({ feed: [{ ...item, id: 'one' }] }), /feed: items\.0\.id: .*URN/)
  await t.rejects(createTestHub({ settings: { HUB_MQTT_PROT: '1' } }), /HUB_MQTT_PROT: unknown/)
  t.strictSame(await readdir(home), [])
})

t.test('a closed test hub leaves nothing behind', async (t) => {
  const home = await temporaryDirectory(t)
  const [program = '', ...args] = commandOf('test/test-hub-program.ts')
  const env = { ...process.env, TMPDIR: home }
  // The limit fails the test if something keeps the process.
  const { stdout, stderr } = await run(program, args, { cwd: home, env, timeout: patienceMs })
  const { before, after } = JSON.parse(stdout)
  t.strictSame(after, before, 'the same variables, listeners and handles')
  t.equal(stderr, '')
  const left = await readdir(home)
  // What tsx keeps belongs to this test when it is run as it is.
  t.strictSame(
    left.filter((name) => !name.startsWith('tsx-')),
    [],
    'no file',
  )
})
