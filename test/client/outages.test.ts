import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { dirname, join } from 'node:path'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { keepConnected } from '../../client/connection.ts'
import { keepSubscribed } from '../../client/keep-subscribed.ts'
import {
  type ClientError,
  connectPublisher,
  connectSubscriber,
  createHttpsPublisher,
  type PublisherOptions,
} from '../../client/node.ts'
import { reasonOf } from '../../client/reason.ts'
import { control, institutions, playing, station } from '../events.ts'
import { listen } from '../listen.ts'
import { temporaryDirectory } from '../start-hub.ts'
import { openScriptedBroker, type Turn } from './scripted-broker.ts'
import { thrownApart } from './thrown-apart.ts'

const [own = ''] = institutions

t.test('an event whose PUBACK is lost is sent again, and reported once', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, connection, report, proceed, cut }) => {
    if (packet.cmd !== 'publish' || connection > 1) return proceed()
    report(packet)
    cut()
  })
  const publisher = open(t, broker)
  t.match(await publisher.publish(playing(station())), { outcome: 'published' })
  t.equal(broker.published.length, 2)
  t.same(broker.published[0]?.payload, broker.published[1]?.payload, 'unchanged')
})

t.test('an event that is published while there is no connection goes out when there is one', async (t) => {
  let problems = 0
  const broker = await openScriptedBroker(t, ({ connection, proceed, cut }) =>
    connection > 1 ? proceed() : cut(),
  )
  const publisher = open(t, broker, {
    onProblem: ({ code }) => {
      t.equal(code, 'connection.lost')
      problems++
    },
  })
  t.match(await publisher.publish(playing(station())), { outcome: 'published' })
  t.equal(problems, 1, 'and the outage is told')
})

for (const returnCode of [1, 2, 3] as const) {
  t.test(`CONNACK ${returnCode} is tried again, after a pause`, async (t) => {
    const ids: string[] = []
    const broker = await openScriptedBroker(t, ({ packet, connection, send, proceed }) => {
      if (packet.cmd === 'connect') ids.push(packet.clientId)
      if (connection > 1) proceed()
      else send({ cmd: 'connack', returnCode, sessionPresent: false })
    })
    const publisher = open(t, broker)
    t.match(await publisher.publish(playing(station())), { outcome: 'published' })
    t.equal(new Set(ids).size, returnCode === 2 ? 2 : 1, 'CONNACK 2 asks for another client id')
  })
}

t.test('a hub that never answers SUBSCRIBE is left, told of, and tried again', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, connection, proceed }) => {
    if (connection > 1 || packet.cmd !== 'subscribe') proceed()
  })
  const problems: string[] = []
  await new Promise<void>((resolve) => {
    const connection = keepConnected(
      {
        url: broker.url,
        ca: readFileSync(broker.ca, 'utf8'),
        clientId: 'studio',
        clean: true,
        filter: 'feedback/urn',
        outlastsRefusals: false,
        platform: { reasonOf },
        answerMs: 1_000,
      },
      {
        ready: () => resolve(),
        lost: ({ message }) => problems.push(message),
        message() {},
        refused: ({ message }) => t.fail(message),
        renamed() {},
      },
    )
    t.teardown(connection.end)
  })
  t.match(problems, [/no answer to SUBSCRIBE in time$/])
})

t.test('a subscriber leaves a hub that never answers SUBSCRIBE, and tries again', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, connection, proceed }) => {
    if (connection > 1 || packet.cmd !== 'subscribe') proceed()
  })
  const told: string[] = []
  await new Promise<void>((resolve) => {
    const subscription = keepSubscribed({
      url: broker.url,
      options: { ca: readFileSync(broker.ca, 'utf8') },
      answerMs: 1_000,
      filters: ['radio/#'],
      clientId: () => 'studio',
      received() {},
      denied() {},
      logIn: async () => ({ username: 'u', password: 'p' }),
      loginRefused: () => false,
      changed(state, _reason, cause) {
        told.push(`${state} ${cause?.message ?? ''}`.trim())
        if (state === 'live') resolve()
      },
    })
    t.teardown(subscription.close)
  })
  t.same(told, ['connecting', 'lost no answer to SUBSCRIBE in time', 'live'])
})

t.test('close of a subscriber ends all its connections, also those that are being opened', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  let cutFirst = () => {}
  const held: (() => void)[] = []
  let happened = () => {}
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise<void>((resolve) => (happened = resolve))
  }
  const broker = await openScriptedBroker(t, ({ packet, connection, proceed, cut }) => {
    if (connection === 1) cutFirst = cut
    if (packet.cmd === 'connect' && connection > 1) held.push(proceed)
    else proceed()
    happened()
  })
  const states: string[] = []
  const subscription = keepSubscribed({
    url: broker.url,
    options: { ca: readFileSync(broker.ca, 'utf8') },
    filters: ['radio/#'],
    clientId: () => 'page',
    received() {},
    denied() {},
    logIn: async () => ({ username: 'u', password: 'p', expiresAt: 0 }),
    loginRefused: () => false,
    changed(state) {
      states.push(state)
      happened()
    },
  })
  await until(() => states.at(-1) === 'live')
  // The login is renewed on a second connection. Meanwhile the first one is lost, and a third one is opened.
  mock.timers.tick(10_000)
  await until(() => held.length === 1)
  cutFirst()
  await until(() => states.at(-1) === 'lost')
  mock.timers.tick(500)
  await until(() => held.length === 2)
  held[0]?.()
  await until(() => states.at(-1) === 'live')
  mock.timers.reset()
  await subscription.close()
  await broker.left()
  t.same(states, ['connecting', 'live', 'lost', 'live'])
})

t.test('a hub whose bytes are no MQTT is left, and tried again', async (t) => {
  const odd = [
    [0x00, 0x00],
    [0x36, 3, 0, 0, 0],
    [0x30, 0xff, 0xff, 0xff, 0xff, 0x01],
    [0xf0, 0x00],
  ]
  await Promise.all(
    odd.map(async (bytes) => {
      const broker = await openScriptedBroker(t, ({ packet, connection, write, proceed }) => {
        if (connection === 1 && packet.cmd === 'publish') write(Uint8Array.from(bytes))
        else proceed()
      })
      const publisher = open(t, broker, { onProblem() {} })
      t.match(await publisher.publish(playing(station())), { outcome: 'published' }, `${bytes}`)
    }),
  )
})

for (const [what, hours] of [
  ['slept', 1],
  ['had its clock set forward', 24],
] as const) {
  t.test(`an event is not sent after the machine has ${what} for too long`, async (t) => {
    let connections = 0
    const broker = await openScriptedBroker(t, ({ packet, connection, proceed, cut }) => {
      connections = connection
      if (connection === 1) cut()
      else if (packet.cmd !== 'publish' || packet.topic.endsWith('/check')) proceed()
    })
    const { now } = Date
    t.teardown(() => {
      Date.now = now
    })
    const publisher = open(t, broker, {
      // While a machine sleeps, its monotonic clock stands still (Linux).
      onProblem: () => {
        Date.now = () => now() + hours * 3_600_000
      },
    })
    await t.rejects(publisher.publish(playing(station())), { code: 'superseded' })
    t.equal(connections, 2)
    t.same(broker.published, [])
    t.match(await publisher.check(playing(station())), { dryRun: true }, 'and goes on with new ones')
  })
}

t.test('an acknowledged event without a report is sent once more, unchanged', async (t) => {
  let publishes = 0
  const broker = await openScriptedBroker(t, ({ packet, send, proceed }) => {
    if (packet.cmd !== 'publish' || ++publishes > 1) return proceed()
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  })
  const publisher = open(t, broker, { reportTimeout: 20 })
  t.match(await publisher.publish(playing(station())), { outcome: 'published', id: '7261' })
  t.equal(broker.published.length, 2)
  t.same(broker.published[0]?.payload, broker.published[1]?.payload)
})

t.test('when no report comes at all, the outcome is unknown, but acknowledged', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, send, proceed }) => {
    if (packet.cmd !== 'publish') return proceed()
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  })
  const publisher = open(t, broker, { reportTimeout: 20 })
  t.same(await publisher.publish(playing(station())), { outcome: 'unknown', acknowledged: true })
  t.equal(broker.published.length, 2)
})

t.test(
  'an event that was acknowledged once is never superseded, also if the hub falls silent then',
  async (t) => {
    const { now } = Date
    t.teardown(() => {
      Date.now = now
    })
    let publishes = 0
    const broker = await openScriptedBroker(t, ({ packet, send, proceed, cut }) => {
      if (packet.cmd !== 'publish') return proceed()
      publishes++
      if (publishes === 1) return send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
      // It is sent again, because no report came. Then an hour passes.
      Date.now = () => now() + 3_600_000
      cut()
    })
    const publisher = open(t, broker, { reportTimeout: 20, onProblem() {} })
    t.same(await publisher.publish(playing(station())), { outcome: 'unknown', acknowledged: true })
  },
)

t.test('the time-out begins with the PUBACK, however late that is', async (t) => {
  let late: (() => void) | undefined
  const broker = await openScriptedBroker(t, ({ packet, proceed }) => {
    if (packet.cmd === 'publish' && packet.topic === `inbox/${own}`) late = proceed
    else proceed()
  })
  const publisher = open(t, broker, { reportTimeout: 1 })
  const published = publisher.publish(playing(station()))
  await broker.count(1)
  // Many turns of the event loop, each longer than the time-out.
  for (let turn = 0; turn < 20; turn++) await publisher.check(control(station()))
  t.equal(broker.published.filter(({ topic }) => topic === `inbox/${own}`).length, 1)
  late?.()
  t.match(await published, { outcome: 'published' })
})

t.test('a report of another client, or of another event, settles nothing', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
    if (packet.cmd !== 'publish') return proceed()
    report(packet, { clientId: 'another-studio', outcome: 'blocked' })
    report(packet, { clientId: null, outcome: 'blocked' })
    report(packet, { payloadHash: '0000000000000000', outcome: 'blocked' })
    report(packet, { dryRun: true, outcome: 'blocked' })
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
    report(packet)
  })
  t.match(await open(t, broker).publish(playing(station())), { outcome: 'published' })
})

t.test('an older hub names no client: then hash and dry run decide', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
    if (packet.cmd !== 'publish') return proceed()
    report(packet, { clientId: undefined })
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  })
  t.match(await open(t, broker).publish(playing(station())), { outcome: 'published' })
})

t.test('what is no report is ignored', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, send, report, proceed }) => {
    if (packet.cmd !== 'publish') return proceed()
    for (const payload of ['', 'no JSON', '\0'.repeat(1000), 'null', '{"outcome":"published"}']) {
      send({ cmd: 'publish', topic: `feedback/${own}`, payload, qos: 0, dup: false, retain: false })
    }
    report(packet, { errors: 'none' })
    proceed()
  })
  t.match(await open(t, broker).publish(playing(station())), { outcome: 'published', errors: [] })
})

t.test('a report that comes again after a lost connection settles no equal event', async (t) => {
  let first: Turn['packet'] | undefined
  const broker = await openScriptedBroker(t, ({ packet, connection, report, proceed }) => {
    if (packet.cmd === 'publish') first ??= packet
    if (packet.cmd === 'publish' && connection === 2 && first?.cmd === 'publish') {
      report(first, { id: 'again' }, true)
      report(packet, { id: 'own' })
    }
    proceed()
  })
  // The hub repeats what was sent in a session that outlasts its connection.
  const publisher = open(t, broker, { outbox: join(await temporaryDirectory(t), 'outbox') })
  const event = playing(station())
  t.match(await publisher.publish(event), { id: '7261' })
  broker.cut()
  t.match(await publisher.publish(event), { id: 'own' })
})

t.test('each of two equal events gets one report, in their order', async (t) => {
  let publishes = 0
  const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
    if (packet.cmd !== 'publish') return proceed()
    publishes++
    report(packet, { id: `${publishes}` })
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  })
  const publisher = open(t, broker)
  const event = playing(station())
  t.match(await Promise.all([publisher.publish(event), publisher.publish(event)]), [{ id: '1' }, { id: '2' }])
})

t.test('at most 500 publishes are without a report, and the others follow', async (t) => {
  const held: (() => void)[] = []
  const broker = await openScriptedBroker(t, ({ packet, proceed }) => {
    if (packet.cmd === 'publish' && packet.topic === `inbox/${own}`) held.push(proceed)
    else proceed()
  })
  const publisher = open(t, broker)
  const events = Array.from({ length: 501 }, (_, count) => playing(station(), { playlistItemId: `${count}` }))
  const all = Promise.all(events.map((event) => publisher.publish(event)))
  await broker.count(500)
  t.equal(held.length, 500)
  held.shift()?.()
  await broker.count(501)
  for (const proceed of held) proceed()
  t.equal((await all).length, 501)
})

t.test('with an outbox, what an ended process has left goes out, with its client id', async (t) => {
  const outbox = join(await temporaryDirectory(t), 'outbox')
  const ids = new Set<string>()
  let isDeaf = true
  const broker = await openScriptedBroker(t, ({ packet, clientId, proceed }) => {
    if (packet.cmd === 'connect') {
      ids.add(clientId)
      t.equal(packet.clean, false)
    }
    if (packet.cmd !== 'publish' || !isDeaf) proceed()
  })
  const first = open(t, broker, { outbox })
  const event = control(station())
  const lost = first.publish(event).catch((error: ClientError) => error.code)
  await broker.count(1)
  t.same(await first.close(0), { unsettled: [event] })
  t.equal(await lost, 'closed')
  isDeaf = false
  const second = open(t, broker, { outbox })
  t.same(
    second.restored.map(({ event }) => event),
    [event],
  )
  t.match(await second.restored[0]?.result, { outcome: 'published' })
  t.equal(ids.size, 1)
  await second.close()
  t.same(open(t, broker, { outbox }).restored, [], 'and is not kept any longer')
})

t.test('with an outbox, what is not worth sending any more is superseded', async (t) => {
  const outbox = join(await temporaryDirectory(t), 'outbox')
  let isOpen = false
  const broker = await openScriptedBroker(t, ({ proceed, cut }) => (isOpen ? proceed() : cut()))
  const publisher = open(t, broker, { outbox })
  const at = (ms: number) => new Date(Date.now() + ms).toISOString()
  const results = Promise.allSettled([
    publisher.publish(playing(station(), { start: at(-60_000) })),
    publisher.publish(control(station(), { validUntil: at(-1) })),
    publisher.publish(playing(station(), { start: at(0) })),
    publisher.publish(control(station())),
  ])
  isOpen = true
  t.match(await results, [
    { reason: { code: 'superseded', message: /^newer: .*playlistItemId "item-1" is published/ } },
    { reason: { code: 'superseded', message: /^expired: validUntil .* has passed$/ } },
    { value: { outcome: 'published' } },
    { value: { outcome: 'published' } },
  ])
  t.equal(broker.published.length, 2)
  await publisher.close()
  const settled = [...readFileSync(outbox, 'utf8').matchAll(/"settled":(\d)/g)].map(([, number]) => number)
  t.ok(settled.indexOf('1') < settled.indexOf('3'), 'a kill between them leaves the newer one')
})

const titles = (broker: Awaited<ReturnType<typeof openScriptedBroker>>) =>
  broker.published.map(({ payload }) => JSON.parse(`${payload}`).title)

for (const [what, fields] of [
  ['refused', { outcome: 'invalid', errors: [] }],
  ['failed', { outcome: 'failed', errors: [] }],
] as const) {
  t.test(`with an outbox, a good title is sent after all if the newer one is ${what}`, async (t) => {
    const outbox = join(await temporaryDirectory(t), 'outbox')
    const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
      if (packet.cmd !== 'publish' || !`${packet.payload}`.includes('"length":0')) return proceed()
      report(packet, fields)
      send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
    })
    const publisher = open(t, broker, { outbox })
    const results = await Promise.allSettled([
      publisher.publish(track(-300, 'oldest')),
      publisher.publish(track(-120, 'good')),
      publisher.publish(track(-60, 'broken', { length: 0 })),
      publisher.publish(track(-30, 'broken too', { length: 0 })),
    ])
    t.match(results, [
      { reason: { code: 'superseded' } },
      { value: { outcome: 'published' } },
      { reason: { name: 'EventRefused' } },
      { reason: { name: 'EventRefused' } },
    ])
    t.same(titles(broker), ['broken too', 'broken', 'good'])
    await publisher.close()
    t.same(open(t, broker, { outbox }).restored, [], 'and all are settled')
  })
}

t.test(
  'with an outbox, a title is sent after all if nobody knows what became of the newer one',
  async (t) => {
    const outbox = join(await temporaryDirectory(t), 'outbox')
    const broker = await openScriptedBroker(t, ({ packet, send, proceed }) => {
      if (packet.cmd !== 'publish' || !`${packet.payload}`.includes('silent')) return proceed()
      send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
    })
    const publisher = open(t, broker, { outbox, reportTimeout: 20 })
    const results = [publisher.publish(track(-120, 'good')), publisher.publish(track(-60, 'silent'))]
    t.match(await Promise.all(results), [{ outcome: 'published' }, { outcome: 'unknown' }])
    t.same(titles(broker), ['silent', 'silent', 'good'])
  },
)

t.test(
  'with an outbox, what waits behind a newer one is not sent after one that came meanwhile',
  async (t) => {
    const outbox = join(await temporaryDirectory(t), 'outbox')
    let refuse = () => {}
    const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
      if (packet.cmd !== 'publish' || !`${packet.payload}`.includes('broken')) return proceed()
      refuse = () => {
        report(packet, { outcome: 'invalid' })
        send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
      }
    })
    const publisher = open(t, broker, { outbox })
    const results = [publisher.publish(track(-120, 'old')), publisher.publish(track(-60, 'broken'))]
    await broker.count(1)
    results.push(publisher.publish(track(0, 'newest')))
    await results.at(-1)
    refuse()
    t.match(await Promise.allSettled(results), [
      { reason: { code: 'superseded' } },
      { reason: { outcome: 'invalid' } },
      { value: { outcome: 'published' } },
    ])
    t.same(titles(broker), ['broken', 'newest'])
  },
)

t.test('with an outbox, 500 titles that were under way do not keep back the newer one', async (t) => {
  const outbox = join(await temporaryDirectory(t), 'outbox')
  const broker = await openScriptedBroker(t, ({ packet, connection, proceed }) => {
    if (connection > 1 || packet.cmd !== 'publish') proceed()
  })
  const publisher = open(t, broker, { outbox, onProblem() {} })
  const first = publisher.publish(control(station()))
  await broker.count(1)
  const old = Array.from({ length: 500 }, (_, count) => publisher.publish(track(count - 600, `${count}`)))
  await broker.count(500)
  const newest = publisher.publish(track(0, 'newest'))
  broker.cut()
  t.match(await newest, { outcome: 'published' })
  t.match(await first, { outcome: 'published' })
  const ends = await Promise.allSettled(old)
  t.ok(ends.every((end) => end.status === 'rejected' && end.reason.code === 'superseded'))
  t.equal(broker.published.length, 502)
})

t.test('with an outbox, a good title outlasts a kill beside a broken one', async (t) => {
  const outbox = join(await temporaryDirectory(t), 'outbox')
  let isDeaf = true
  const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
    if (packet.cmd !== 'publish' || !`${packet.payload}`.includes('broken')) return proceed()
    if (isDeaf) return
    report(packet, { outcome: 'invalid' })
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  })
  const first = open(t, broker, { outbox })
  const left = Promise.allSettled([first.publish(track(-60, 'good')), first.publish(track(0, 'broken'))])
  await broker.count(1)
  await first.close(0)
  t.match(await left, [{ reason: { code: 'closed' } }, { reason: { code: 'closed' } }])
  isDeaf = false
  const { restored } = open(t, broker, { outbox })
  t.match(await Promise.allSettled(restored.map(({ result }) => result)), [
    { value: { outcome: 'published' } },
    { reason: { outcome: 'invalid' } },
  ])
  t.same(titles(broker), ['broken', 'broken', 'good'])
})

t.test('with an outbox, the check of a newer event supersedes nothing', async (t) => {
  const outbox = join(await temporaryDirectory(t), 'outbox')
  const broker = await openScriptedBroker(t, ({ proceed }) => proceed())
  const publisher = open(t, broker, { outbox })
  const results = [publisher.publish(track(-60, 'good')), publisher.check(track(0, 'only checked'))]
  t.match(await Promise.all(results), [{ outcome: 'published' }, { dryRun: true }])
})

t.test('with an outbox, an event of an earlier process is not sent after 55 minutes', async (t) => {
  const outbox = join(await temporaryDirectory(t), 'outbox')
  const line = (number: number, minutes: number) => {
    const payload = JSON.stringify(control(station(), { name: `minute ${minutes}` }))
    return JSON.stringify({ number, at: Date.now() - minutes * 60_000, payload })
  }
  // The hub knows a repeated event again for an hour: later it would be another one.
  const lines = [JSON.stringify({ outbox: 1, clientId: 'studio' }), line(1, 56), line(2, 54)]
  writeFileSync(outbox, lines.map((line) => `${line}\n`).join(''))
  const broker = await openScriptedBroker(t, ({ proceed }) => proceed())
  const { restored } = open(t, broker, { outbox })
  t.match(await Promise.allSettled(restored.map(({ result }) => result)), [
    { reason: { code: 'superseded', message: /^too old: / } },
    { value: { outcome: 'published' } },
  ])
  t.equal(broker.published.length, 1)
})

t.test('with an outbox, a refused log-in rejects at once, and the event stays in it', async (t) => {
  const outbox = join(await temporaryDirectory(t), 'outbox')
  let returnCode: 0 | 4 = 4
  const broker = await openScriptedBroker(t, ({ packet, send, proceed }) => {
    if (packet.cmd === 'connect' && returnCode === 4)
      send({ cmd: 'connack', returnCode, sessionPresent: false })
    else proceed()
  })
  const first = open(t, broker, { outbox })
  const event = control(station())
  await t.rejects(first.publish(event), { code: 'login.refused' })
  await t.rejects(first.publish(event), { code: 'login.refused' })
  await first.close()
  returnCode = 0
  const second = open(t, broker, { outbox })
  t.match(await Promise.all(second.restored.map(({ result }) => result)), [{ id: '7261' }, { id: '7261' }])
})

for (const [what, refuse] of [
  ['login.refused', 'connect'],
  ['feedback.denied', 'subscribe'],
] as const) {
  t.test(`with an outbox, close waits for nothing more after ${what}`, async (t) => {
    const outbox = join(await temporaryDirectory(t), 'outbox')
    let answer = () => {}
    const broker = await openScriptedBroker(t, ({ packet, send, proceed }) => {
      if (packet.cmd !== refuse) return proceed()
      answer = () => {
        if (packet.cmd === 'connect') send({ cmd: 'connack', returnCode: 4, sessionPresent: false })
        if (packet.cmd === 'subscribe')
          send({ cmd: 'suback', messageId: packet.messageId ?? 0, granted: [0x80] })
      }
      asked()
    })
    let asked = () => {}
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve
    })
    const publisher = open(t, broker, { outbox, onProblem() {} })
    const event = control(station())
    const refused = t.rejects(publisher.publish(event), { code: what })
    await isAsked
    // Longer than the test may take.
    const closed = publisher.close(600_000)
    answer()
    t.same(await closed, { unsettled: [event] })
    await refused
  })
}

t.test('close waits for as long as it is told, also without an end', async (t) => {
  // More than a timer of Node.js or of a browser holds.
  for (const waitMs of [Number.POSITIVE_INFINITY, 2 ** 31]) {
    const broker = await openScriptedBroker(t, ({ packet, proceed }) => {
      if (packet.cmd === 'publish') setTimeout(proceed, 50)
      else proceed()
    })
    const publisher = open(t, broker)
    const published = publisher.publish(playing(station()))
    t.same(await publisher.close(waitMs), { unsettled: [] })
    t.match(await published, { outcome: 'published' })
  }
})

t.test('a refused event of an earlier process is told, unless the program looks at it', async (t) => {
  const outbox = join(await temporaryDirectory(t), 'outbox')
  const payload = JSON.stringify(playing(station(), { playlistItemId: 'broken' }))
  const lines = [
    { outbox: 1, clientId: 'studio' },
    { number: 1, at: Date.now(), payload },
  ]
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
    if (packet.cmd !== 'publish' || packet.topic.endsWith('/check')) return proceed()
    report(packet, { outcome: 'invalid', errors: [{ path: '.length', message: 'wrong', errorCode: 'x' }] })
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  })
  for (const looks of [false, true]) {
    writeFileSync(outbox, text)
    const problems: ClientError[] = []
    const publisher = open(t, broker, { outbox, onProblem: (problem) => problems.push(problem) })
    if (looks) {
      t.match(await Promise.allSettled(publisher.restored.map(({ result }) => result)), [
        { reason: { outcome: 'invalid' } },
      ])
    }
    await publisher.close()
    t.match(
      problems,
      looks
        ? []
        : [
            {
              code: 'event.refused',
              message: 'playlistItemId "broken": invalid: .length wrong',
              cause: { outcome: 'invalid' },
            },
          ],
    )
    t.equal(problems.length, looks ? 0 : 1)
  }
})

t.test('the same problem is told once, and the connection when it is back', async (t) => {
  const told: string[] = []
  const broker = await openScriptedBroker(t, ({ packet, connection, proceed, cut, send }) => {
    if (connection < 3) cut()
    else if (connection === 3 && packet.cmd === 'connect') {
      send({ cmd: 'connack', returnCode: 3, sessionPresent: false })
    } else proceed()
  })
  const publisher = open(t, broker, {
    onProblem: ({ message }) => told.push(message.replace(/.*: /, '')),
    onConnected: () => told.push('connected'),
  })
  await publisher.publish(playing(station()))
  t.match(told, [/./, /./, 'connected'])
  t.equal(told.length, 3, 'two different problems in three attempts')
})

t.test('an untrusted certificate, and a port that is not for MQTT, are told with what helps', async (t) => {
  const broker = await openScriptedBroker(t, ({ proceed }) => proceed())
  const problemOf = (options: Partial<PublisherOptions>) =>
    new Promise<ClientError>((resolve) => void open(t, broker, { ...options, onProblem: resolve }))
  t.match(await problemOf({ ca: undefined }), {
    code: 'connection.lost',
    message:
      /self.signed certificate in certificate chain: set ca to the CA of the hub$|unable to verify .*: set ca to the CA of the hub$/,
  })
  const [key, cert] = ['server-key.pem', 'server.pem'].map((name) =>
    readFileSync(join(dirname(broker.ca), name)),
  )
  const server = createServer({ key, cert })
  const port = await listen(t, server)
  t.match(await problemOf({ url: `mqtts://localhost:${port}` }), {
    code: 'connection.lost',
    message: /this is no MQTT port, it answers in HTTP$/,
  })
  const untrusted = createHttpsPublisher({
    url: `https://localhost:${port}`,
    email: 'a@b.example',
    password: 'p',
    patience: 0,
  })
  await t.rejects(untrusted.publish(playing(station())), {
    code: 'hub.unavailable',
    message: /: set ca to the CA of the hub$/,
  })
})

t.test('after close of a subscriber nothing arrives, also of what the hub had sent before', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, send, proceed }) => {
    proceed()
    if (packet.cmd !== 'subscribe') return
    for (let number = 0; number < 100; number++) {
      const payload = JSON.stringify(control(station()))
      const topic = `radio/${number}/control`
      send({ cmd: 'publish', topic, payload, qos: 0, dup: false, retain: true })
    }
  })
  const subscriber = subscribed(broker, () => {})
  let heard = 0
  await new Promise<void>((resolve) => {
    subscriber.on('control', () => {
      if (heard++ === 0) void subscriber.close().then(() => setImmediate(resolve))
    })
  })
  t.equal(heard, 1)
  t.equal(subscriber.nowPlaying.size, 1, 'so no timer of a control state keeps the process')
})

t.test('a subscriber goes on when its onProblem fails, and that is seen', async (t) => {
  const broker = await openScriptedBroker(t, ({ connection, proceed, cut }) =>
    connection > 1 ? proceed() : cut(),
  )
  const thrown = thrownApart(t)
  const subscriber = subscribed(broker, () => {
    throw new Error('of onProblem')
  })
  t.teardown(subscriber.close)
  await new Promise<void>((resolve) => {
    subscriber.on('state', (state) => state === 'live' && resolve())
  })
  t.match(thrown, [{ message: 'of onProblem' }])
})

function track(seconds: number, title: string, fields: Record<string, unknown> = {}) {
  const start = new Date(Date.now() + seconds * 1000).toISOString()
  return playing(station(), { start, title, ...fields })
}

type Scripted = Awaited<ReturnType<typeof openScriptedBroker>>

function subscribed({ url, ca }: Scripted, onProblem: () => void) {
  return connectSubscriber({ url, ca, username: 'u', password: 'p', filters: ['radio/#'], onProblem })
}

function open(t: Test, { url, ca }: Scripted, options: Partial<PublisherOptions> = {}) {
  const publisher = connectPublisher({
    url,
    ca,
    username: 'pub-test',
    password: 'secret',
    institution: own,
    ...options,
  })
  t.teardown(() => publisher.close(0))
  return publisher
}
