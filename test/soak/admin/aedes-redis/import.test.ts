import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { ImportReport } from '../../../../admin/aedes-redis/report.ts'
import { startAedesOnRedis } from '../../../aedes-on-redis.ts'
import { runHubctl } from '../../../cli/run-hubctl.ts'
import { shortDir } from '../../../cli/short-dir.ts'
import { connect } from '../../../clients.ts'
import { control, controlTopic, playing, playingTopic, station } from '../../../events.ts'
import { startRedis } from '../../../redis-server.ts'
import { startTestHub, type TestHub } from '../../../start-hub.ts'
import { onEachStore } from '../../../stores.ts'

type Report = ImportReport & { source: string; dryRun: boolean }

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()

onEachStore('a session comes over with its filters and what waits for it', async (t, store) => {
  const { hub, redis, aedes } = await startBoth(t, store)
  const listener = await hub.subscriber(`radio/${station().id}/#`)
  const publisher = await hub.publisher([station().institution.id])
  const inner = await aedes.connect({ clientId: 'studio' })
  await aedes.leaveSession('player-1', `radio/${station().id}/#`, `radio/${station(1).id}/#`)
  await aedes.leaveSession(publisher.username, `feedback/${station().institution.id}`, 'inbox/#')
  await aedes.leaveSession('stranger', '#')
  const reader = await hub.reader('radio/#')
  await aedes.leaveSession(reader.username, 'radio/#')
  const traffic = control(station())
  const lane = control(station(), { name: 'lane', time: minutesAgo(1) })
  const over = control(station(), { name: 'over', time: minutesAgo(2), validUntil: minutesAgo(1) })
  const track = playing(station(), { title: 'Ebbe' })
  const publish = (topic: string, event: object, retain = false) =>
    inner.publishAsync(topic, JSON.stringify(event), { qos: 1, retain })
  await publish(controlTopic(station()), over)
  await publish(controlTopic(station()), lane)
  await publish(controlTopic(station()), traffic, true)
  await publish(playingTopic(station()), track, true)
  await publish('playing/of/before', playing(station(), { title: 'Flut', start: minutesAgo(5) }), true)
  await publish('playing/elsewhere', playing({ ...station(), externalId: 'crid://x.example/1/2' }), true)
  await publish('status/of/player-1', { online: true }, true)
  await aedes.close()

  const users = join(hub.home, 'users')
  writeFileSync(users, `player-*,${listener.username}\n`)
  const args = ['import', '--aedes-redis', redis.url, '--users', users, '--socket', hub.adminSocket, '--json']
  const dry = await hubctl(args, '--dry-run')
  t.match(dry, {
    source: redis.url,
    dryRun: true,
    sessions: {
      found: 4,
      cameOver: 2,
      leftOut: [{ reason: 'no-credential', count: 2 }],
    },
    filters: { found: 4, cameOver: 2, leftOut: [{ reason: 'not-permitted', count: 2 }] },
    queued: { found: 4, cameOver: 2 },
  })
  const [{ examples = [] } = {}] = dry.sessions.leftOut
  t.same(examples.map(({ of }) => of).sort(), [reader.username, 'stranger'], 'a reader has no sessions')
  t.same(reasons(dry.queued), { 'event.expired': 1, 'not-control': 1 })
  t.strictSame(await hub.ask('sessions.list'), [], 'a dry run brings no session')
  t.strictSame(await hub.ask('retained.list'), [], 'and no event')
  t.notOk(await audited(hub), 'and changes nothing that the audit log would name')

  const done = await hubctl(args)
  t.strictSame(figures(done), figures(dry), 'the dry run told what would come over, and what would not')
  t.same(reasons(done.retained), { 'required.openapi.validation': 1, 'service.unknown': 1, older: 1 })
  const retained = await hub.ask<{ topic: string }[]>('retained.list')
  t.same(retained.map(({ topic }) => topic).sort(), [controlTopic(station()), playingTopic(station())].sort())
  const entries = await hub.ask<{ action: string; target: string; detail: unknown }[]>('audit')
  t.match(
    entries.filter(({ action }) => action === 'import.aedes-redis'),
    [
      { target: redis.url, detail: null },
      { target: redis.url, detail: { cameOver: { sessions: 2, retained: 2 } } },
    ],
  )

  const player = await connect(t, hub, listener, { clientId: 'player-1', clean: false })
  await player.received.count(3)
  const got = player.received.all.map(({ topic, json }) => [topic, json.name ?? json.title])
  t.same(
    got.sort(),
    [
      [controlTopic(station()), 'lane'],
      [controlTopic(station()), 'traffic-announcement'],
      [playingTopic(station()), 'Ebbe'],
    ].sort(),
    'control states that are valid, and the newest track',
  )
  const studio = await connect(t, hub, publisher, { clientId: publisher.username, clean: false })
  await studio.client.publishAsync(`inbox/${station().institution.id}`, JSON.stringify(track), { qos: 1 })
  await studio.received.count(1)
  t.equal(studio.received.all.length, 1, 'a publisher hears of its own event, by the filter that came over')

  const again = await hubctl(args)
  t.same(reasons(again.sessions), { exists: 2, 'no-credential': 2 })
  t.equal(
    again.retained.cameOver + again.sessions.cameOver + again.queued.cameOver,
    0,
    'a second run is harmless',
  )
})

test('what an Aedes broker never wrote stays out, and hides nothing', async (t) => {
  const { hub, redis, aedes } = await startBoth(t)
  const { username } = await hub.subscriber('radio/#')
  const listener = `${username}/kitchen`
  for (const name of [listener, `${username}-list`, `${username}-filters`, `${username}-many`])
    await aedes.leaveSession(name, 'radio/#')
  const inner = await aedes.connect({ clientId: 'studio' })
  const publish = (event: object, retain = false) =>
    inner.publishAsync(controlTopic(station()), JSON.stringify(event), { qos: 1, retain })
  await publish(control(station(), { name: 'first' }))
  await publish(control(station(), { name: 'second' }), true)
  await aedes.close()

  const raw = redis.client()
  const msgpack = (text: string) => Buffer.from(text, 'hex')
  const id = encodeURIComponent(listener)
  await raw.hset('retained', 'cut/short', msgpack('c7ffffff'), 'a/number', msgpack('2a'), 'a/#', 'x')
  await raw.hset('retained', 'no/payload', msgpack('81a7 7061796c6f6164 c0'.replaceAll(' ', '')))
  await raw.hset('retained', 'x'.repeat(60_000), 'x', '\u0000\ud800', 'x', '__proto__', 'x')
  await raw.hset('retained', 'large', Buffer.alloc(3 * 1024 * 1024, 'x'))
  await raw.hset('retained', 'deep', Buffer.alloc(500_000, 0x91))
  const [before = ''] = await raw.lrange(`outgoing:${id}`, 0, 0)
  await raw.lpush(`outgoing:${id}`, 'packet:gone:1', 'packet:broken:1', 'packet:large:1', 'packet:hash:1')
  await raw.set('packet:broken:1', msgpack('c7ffffff'))
  await raw.set('packet:large:1', Buffer.alloc(3 * 1024 * 1024, 'x'))
  await raw.hset('packet:hash:1', 'a', 'b')
  const list = encodeURIComponent(`${username}-list`)
  await raw.del(`outgoing:${list}`)
  await raw.set(`outgoing:${list}`, 'no list')
  await raw.hset(`client:${encodeURIComponent(`${username}-filters`)}`, 'a', msgpack('c7ffffff'))
  const many = Array.from({ length: 1_001 }, (_, index) => [`radio/${index}`, '1']).flat()
  await raw.hset(`client:${encodeURIComponent(`${username}-many`)}`, ...many)
  await raw.sadd(
    'clients',
    '',
    'x'.repeat(70_000),
    Buffer.from('ff00fe', 'hex'),
    `${username}-${'x'.repeat(300)}`,
  )
  await raw.sadd('clients', `${username}-no-filters`)
  const size = await raw.dbsize()

  const report = await hub.ask<Report>('import.aedes-redis', { url: redis.url, progress: false })
  t.match(reasons(report.retained), { 'too-large': 1, topic: 1, unreadable: Number })
  t.equal(report.retained.cameOver, 1, 'the one event among them')
  t.equal(report.retained.found, 10)
  t.same(reasons(report.sessions), {
    'no-credential': 3,
    unreadable: 1,
    'too-many-filters': 1,
    'client-id': 1,
    'no-filter': 1,
  })
  t.equal(report.sessions.cameOver, 2, 'also the session whose queue is no list')
  t.same(reasons(report.queued), { gone: 1, 'too-large': 1, unreadable: 3 })
  t.equal(report.queued.cameOver, 2)
  t.equal(await raw.dbsize(), size, 'nothing was written there')
  t.ok((await raw.lrange(`outgoing:${id}`, 0, -1)).includes(before))
  t.equal((await raw.lrange(`outgoing:${id}`, 0, -1)).length, 6, 'and nothing was taken from a queue')
  t.match(await hub.ask('sessions.show', { clientId: listener }), { queued: 2, subscriptions: ['radio/#'] })
})

test('a session that the hub has stays as it is, and so does what is newer', async (t) => {
  const { hub, redis, aedes } = await startBoth(t, { HUB_MAX_SESSIONS_PER_CREDENTIAL: '2' })
  const listener = await hub.subscriber('radio/#')
  const login = { clientId: listener.username, clean: false }
  const { client } = await connect(t, hub, listener, login)
  await client.subscribeAsync(playingTopic(station()), { qos: 1 })
  const publisher = await hub.publisher([station().institution.id])
  const here = await connect(t, hub, publisher)
  const inbox = `inbox/${station().institution.id}`
  await here.client.publishAsync(inbox, JSON.stringify(playing(station(), { title: 'here' })), { qos: 1 })

  const inner = await aedes.connect({ clientId: 'studio' })
  for (const name of ['', '-a', '-b', '-c'])
    await aedes.leaveSession(`${listener.username}${name}`, 'radio/#')
  const older = playing(station(), { start: minutesAgo(1), title: 'there' })
  await inner.publishAsync('a', JSON.stringify(older), { qos: 1, retain: true })
  await aedes.close()

  for (const dryRun of [true, false]) {
    const report = await hub.ask<Report>('import.aedes-redis', { url: redis.url, dryRun, progress: false })
    t.same(reasons(report.retained), { older: 1 })
    t.same(reasons(report.sessions), { exists: 1, 'too-many-sessions': 2 })
  }
  t.match(await hub.ask('sessions.show', { clientId: listener.username }), {
    connected: true,
    subscriptions: [playingTopic(station())],
  })
  t.match(await hub.ask('retained.list'), [{ topic: playingTopic(station()), payload: /here/ }])
})

test('a Redis that is none of Aedes is refused, and no password is shown', async (t) => {
  const redis = await startRedis(t, ['requirepass secret-word'])
  const hub = await startTestHub(t)
  const url = (userinfo: string, port = redis.port) => `redis://${userinfo}127.0.0.1:${port}`
  const isRefused = async (asked: TestHub, given: string, why: RegExp) => {
    const refused = await asked
      .ask('import.aedes-redis', { url: given })
      .catch((error: Error) => error.message)
    t.match(refused, /^url must be the URL of a Redis with data of Aedes, such as redis:.*, not "/)
    t.match(refused, why)
    t.notMatch(refused, 'secret-word')
  }
  await isRefused(hub, '127.0.0.1:6379', /it has another form$/)
  await isRefused(hub, 'https://:secret-word@x', /it has another form$/)
  await isRefused(hub, `redis://:secret-word@${'x'.repeat(3_000)}`, /it has another form$/)
  await isRefused(hub, 'redis://:%ff-secret-word@127.0.0.1', /malformed/)
  // These imports fail slowly, and a hub runs one import at a time: each import gets its own hub.
  const unanswered: [string, RegExp][] = [
    [url(':secret-word@', 1), /ECONNREFUSED/],
    [url(''), /NOAUTH/],
    [url(':other-secret-word@'), /WRONGPASS/],
  ]
  await Promise.all(unanswered.map(async ([given, why]) => isRefused(await startTestHub(t), given, why)))
  await isRefused(hub, url(':secret-word@'), /neither a set "clients" nor a hash "retained"/)
  const raw = redis.client({ password: 'secret-word' })
  await raw.set('clients', 'no set')
  const socket = ['--socket', hub.adminSocket]
  const run = await runHubctl(['import', '--aedes-redis', '-', ...socket], {
    stdin: `${url(':secret-word@')}\n`,
  })
  t.equal(run.code, 1)
  t.match(run.stderr, /neither a set/)
  await raw.del('clients')
  await raw.sadd('clients', 'a')
  t.match(await hub.ask('import.aedes-redis', { url: url(':secret-word@'), progress: false }), {
    source: url('***@'),
    sessions: { found: 1 },
  })
  t.match(await hub.ask('audit', { action: 'import.aedes-redis' }), [{ target: url('***@') }, {}])
  t.notMatch(JSON.stringify([hub.lines, await hub.ask('audit'), run]), 'secret-word')
  const malformed = await runHubctl(['import', '--aedes-redis', 'http://x', ...socket])
  t.equal(malformed.code, 2)
  t.match(malformed.stderr, '--aedes-redis must be a URL like redis://host:6379/0')
  const users = join(hub.home, 'users')
  writeFileSync(users, 'a,b\n\nplayer-1\n')
  const lines = await runHubctl(['import', '--aedes-redis', url(''), '--users', users, ...socket])
  t.match(lines.stderr, 'users: line 2 is "player-1", expected a client id, a comma and a user name')
})

test('hubctl import is of a file, or of Aedes', async (t) => {
  const runs: [args: string[], says: string][] = [
    [[], 'name a file of hubctl export, or give --aedes-redis URL'],
    [['--dry-run'], '--dry-run is for --aedes-redis'],
    [['file', '--users', 'users'], '--users is for --aedes-redis'],
    [['file', '--aedes-redis', 'redis://x'], 'a file and --aedes-redis cannot be given together'],
    [['--stopped', '--aedes-redis', 'redis://x'], '--stopped is for a file'],
    [['--users', 'none', '--aedes-redis', 'redis://x'], 'cannot read none'],
  ]
  for (const [args, says] of runs) {
    const { code, stderr } = await runHubctl(['import', ...args])
    t.equal(code, 2)
    t.match(stderr, says)
  }
})

test('the list of processes does not show the password of a URL', async (t) => {
  const secret = `s${randomUUID()}`
  const socket = join(await shortDir(t), 'a.sock')
  let processes = ''
  const node = createServer((_request, response) => {
    execFile('ps', ['-eo', 'args'], (_error, stdout) => {
      processes = stdout
      response.end(JSON.stringify({ result: {} }))
    })
  }).listen(socket)
  t.teardown(() => node.close())
  await once(node, 'listening')
  await runHubctl(['import', '--aedes-redis', `redis://:${secret}@127.0.0.1:1`, '--socket', socket])
  t.match(processes, /^hubctl import$/m)
  t.notMatch(processes, secret)
})

async function startBoth(t: Test, store: Record<string, string> = {}) {
  const redis = await startRedis(t)
  const aedes = await startAedesOnRedis(t, redis)
  const hub = await startTestHub(t, store)
  return { hub, redis, aedes }
}

async function hubctl(args: readonly string[], ...more: string[]): Promise<Report> {
  const { stdout, stderr } = await runHubctl([...args, ...more])
  const result = JSON.parse(stdout)
  if ('error' in result) throw new Error(`${result.error.message} ${stderr}`)
  return result
}

async function audited(hub: TestHub): Promise<boolean> {
  const entries = await hub.ask<{ action: string }[]>('audit')
  return entries.some(({ action }) => action === 'import.aedes-redis')
}

function reasons({ leftOut }: ImportReport['sessions']): Record<string, number> {
  return Object.fromEntries(leftOut.map(({ reason, count }) => [reason, count]))
}

function figures({ retained, sessions, filters, queued }: Report) {
  return [retained, sessions, filters, queued].map((part) => [part.found, part.cameOver, reasons(part)])
}
