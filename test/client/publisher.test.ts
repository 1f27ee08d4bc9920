import t, { type Test } from 'tap'
import { type ClientError, connectPublisher, EventRefused, type PublisherOptions } from '../../client/node.ts'
import { connect } from '../clients.ts'
import { control, institutions, playing, playingTopic, station } from '../events.ts'
import { freePort } from '../free-port.ts'
import { startTestHub } from '../start-hub.ts'

const [own = '', foreign = ''] = institutions
const hub = await startTestHub(t)

t.test('an event resolves with its report, over real TLS', async (t) => {
  const { client, received } = await connect(t, hub, await hub.subscriber('radio/#'))
  await client.subscribeAsync('radio/#', { qos: 1 })
  const publisher = await open(t)
  const report = await publisher.publish(playing(station(), { title: 'Ebbe und Flut' }))
  t.match(report, { outcome: 'published', statuses: { published: 1 }, services: [station().id], errors: [] })
  const arrived = await received.until(({ topic }) => topic === playingTopic(station()))
  t.match(arrived.json, { title: 'Ebbe und Flut', id: 'id' in report ? report.id : 'missing' })
})

t.test('a refusal rejects with its outcome and errors, and does not disturb others', async (t) => {
  const publisher = await open(t)
  const [bad, foreigners, good] = await Promise.allSettled([
    publisher.publish(playing(station(), { length: 0 })),
    publisher.publish(playing(station(1))),
    publisher.publish(playing(station())),
  ])
  t.match(bad, { status: 'rejected', reason: { outcome: 'invalid', errors: [{ path: '.length' }] } })
  t.ok(bad?.status === 'rejected' && bad.reason instanceof EventRefused)
  t.match(foreigners, { status: 'rejected', reason: { outcome: 'blocked' } })
  t.match(good, { status: 'fulfilled', value: { outcome: 'published' } })
})

t.test('warnings are handed on', async (t) => {
  const publisher = await open(t)
  const report = await publisher.publish(playing(station(), { plugins: [{ type: 'nobody' }] }))
  t.match(report, { outcome: 'published', warnings: [{ errorCode: 'plugin.unknown' }] })
})

t.test('a check says what would become of an event, and publishes nothing', async (t) => {
  const { client, received } = await connect(t, hub, await hub.subscriber('radio/#'))
  await client.subscribeAsync('radio/#', { qos: 1 })
  const publisher = await open(t)
  const event = playing(station(), { title: 'Only asked' })
  const [checked] = await Promise.all([publisher.check(event), publisher.publish(control(station()))])
  t.match(checked, { outcome: 'published', dryRun: true, id: null })
  await t.rejects(publisher.check(playing(station(), { title: 7 })), {
    name: 'EventRefused',
    message: /^invalid: \.title/,
  })
  await received.until(({ topic }) => topic.endsWith('/control'))
  t.notOk(received.all.some(({ json }) => json.title === 'Only asked'))
})

t.test('an event that is asked about and published at once gets both answers', async (t) => {
  const publisher = await open(t)
  const event = playing(station())
  const [checked, published] = await Promise.all([publisher.check(event), publisher.publish(event)])
  t.match(checked, { dryRun: true })
  t.notOk('dryRun' in published)
})

t.test('an event that is published twice on purpose gets two reports with one id', async (t) => {
  const publisher = await open(t)
  const event = playing(station())
  const reports = await Promise.all([publisher.publish(event), publisher.publish(event)])
  t.match(reports, [{ outcome: 'published' }, { outcome: 'published' }])
  t.equal(new Set(reports.map((report) => 'id' in report && report.id)).size, 1)
})

t.test('a wrong password rejects at once, also later', async (t) => {
  const problems: ClientError[] = []
  const publisher = await open(t, { password: 'wrong', onProblem: (problem) => problems.push(problem) })
  await t.rejects(publisher.publish(playing(station())), { name: 'ClientError', code: 'login.refused' })
  await t.rejects(publisher.publish(playing(station())), { code: 'login.refused' })
  t.match(problems, [{ code: 'login.refused' }])
})

t.test('a feedback that may not be read rejects at once', async (t) => {
  const publisher = await open(t, { institution: foreign })
  await t.rejects(publisher.publish(playing(station())), { code: 'feedback.denied', message: /feedback\// })
})

t.test('a credential that is revoked rejects what comes next', async (t) => {
  const login = await hub.publisher([own])
  let refused = () => {}
  const isRefused = new Promise<void>((resolve) => {
    refused = resolve
  })
  const publisher = await open(t, {
    ...login,
    onProblem: ({ code }) => code === 'login.refused' && refused(),
  })
  await publisher.publish(playing(station()))
  await hub.ask('credentials.revoke', { username: login.username })
  await isRefused
  await t.rejects(publisher.publish(playing(station())), { code: 'login.refused' })
})

t.test('close waits for what is under way, and rejects what comes later', async (t) => {
  const publisher = await open(t)
  const published = publisher.publish(playing(station()))
  t.same(await publisher.close(), { unsettled: [] })
  t.match(await published, { outcome: 'published' })
  await t.rejects(publisher.publish(playing(station())), { code: 'closed' })
})

t.test('close says what was not settled', async (t) => {
  const publisher = await open(t, { url: `mqtts://localhost:${await freePort()}` })
  const event = playing(station())
  const published = t.rejects(publisher.publish(event), { code: 'closed' })
  t.same(await publisher.close(50), { unsettled: [event] })
  await published
})

t.test('an event that the hub could not even read is refused here', async (t) => {
  const publisher = await open(t)
  const loop: Record<string, unknown> = {}
  loop.self = loop
  await t.rejects(publisher.publish(loop), { code: 'event.unreadable' })
  await t.rejects(publisher.publish(Object([])), { code: 'event.unreadable' })
  await t.rejects(publisher.publish(playing(station(), { title: 'x'.repeat(409_600) })), {
    name: 'EventRefused',
    message: /409600 bytes/,
  })
})

t.test('a wrong option is named', async (t) => {
  const good = { url: 'mqtts://localhost', username: 'pub-x', password: 'x', institution: own }
  for (const [wrong, message] of [
    [{ url: 'mqtt://localhost' }, /^url .*mqtts:/],
    [{ url: 'mqtts://pub:x@localhost' }, /^url must not hold/],
    [{ username: '' }, /^username/],
    [{ username: 'x'.repeat(65_536) }, /^username .*65,535/],
    [{ password: 'ü'.repeat(32_768) }, /^password .*65,535/],
    [{ outbox: '' }, /^outbox/],
    [{ institution: 'urn/#' }, /^institution/],
    [{ reportTimeout: 0 }, /^reportTimeout/],
    [{ ca: '/does/not/exist' }, /^ca .*\/does\/not\/exist/],
  ] as const) {
    t.throws(() => connectPublisher({ ...good, ...wrong }), { code: 'option.invalid', message })
  }
})

async function open(t: Test, options: Partial<PublisherOptions> = {}) {
  const publisher = connectPublisher({
    url: `mqtts://localhost:${hub.mqttPort}`,
    ...(await hub.publisher([own])),
    ca: hub.caPath,
    institution: own,
    ...options,
  })
  t.teardown(() => publisher.close(0))
  return publisher
}
