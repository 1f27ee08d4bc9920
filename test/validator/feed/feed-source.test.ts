import { execFile } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { join } from 'node:path'
import { mock } from 'node:test'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import pino from 'pino'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import type { Store } from '../../../store/store.ts'
import { createFeedSource, type FeedSource } from '../../../validator/feed/feed-source.ts'
import { collectGarbage } from '../../collect-garbage.ts'
import { listen } from '../../listen.ts'
import { openStore } from '../../open-store.ts'
import { commandOf, root } from '../../root.ts'
import { feedText, item, textOf } from '../feeds.ts'

/** A refresh interval (milliseconds) that no test reaches: the tests call `refresh` themselves. */
const never = 1_000_000_000
const start = Date.parse('2026-01-31T12:00:00Z')

t.test('a file is read at the start', async (t) => {
  const { source, path } = await startOnFile(t, feedText(10))
  t.strictSame(source.status(), {
    source: path,
    loadedFrom: path,
    items: 10,
    loadedAt: '2026-01-31T12:00:00.000Z',
    ok: true,
    checkedAt: '2026-01-31T12:00:00.000Z',
    reason: null,
    problem: null,
    ignoredCanaries: [],
  })
  t.equal(source.current()?.size, 10)
})

t.test('lookup takes ids and external ids of livestreams, and publishers', async (t) => {
  const shared = { externalId: 'crid://example/shared' }
  const text = textOf([item(1), item(2), item(3, 2, shared), item(4, 3, shared)])
  const { source } = await startOnFile(t, text)
  const idsOf = async (id: string) => (await source.lookup(id)).map(({ id }) => id.split(':').at(-1))
  t.strictSame(await idsOf('urn:org:permanent-livestream:2'), ['2'])
  t.strictSame(await idsOf('crid://example/1'), ['1'])
  t.strictSame(await idsOf('crid://example/shared'), ['3', '4'])
  t.strictSame(await idsOf('urn:org:publisher:1'), ['1', '2'])
  t.strictSame(await idsOf('none'), [])
})

t.test('lookup takes part of a name, where it is no id', async (t) => {
  const { source } = await startOnFile(t, readFileSync(sampleFeedPath, 'utf8'))
  const titlesOf = async (text: string) => (await source.lookup(text)).map(({ title }) => title)
  const ofInstitution = await titlesOf('urn:org:institution:75b657fb49856f7b')
  t.equal(ofInstitution.length, 8)
  t.match(ofInstitution, ['Küstenwelle 1', 'Küstenwelle 2 Kultur'])
  for (const name of ['Küstenfunk Nord', 'KUEF', ' küstenfunk  nord', 'Ku\u0308stenfunk'])
    t.strictSame(await titlesOf(name), ofInstitution, name)
  t.strictSame(await titlesOf('welle 2 kul'), ['Küstenwelle 2 Kultur'])
  for (const name of ['Nirgendwo', ' ', 'urn:org:institution:7']) t.strictSame(await titlesOf(name), [], name)
})

t.test('without any good feed there is none, and it says why', async (t) => {
  const path = join(t.testdir(), 'none.json')
  const source = await startSource(t, { source: path, store: await openStore(t) })
  t.equal(source.current(), undefined)
  t.strictSame(await source.lookup('crid://example/1'), [])
  t.match(source.status(), { items: 0, loadedAt: null, ok: false, problem: /ENOENT.*none\.json/ })
  writeFileSync(path, feedText(3))
  t.match(await source.refresh({ force: false }), { items: 3, itemsBefore: 0, ok: true, problem: null })
})

t.test('the last good feed stays where the new one is no good', async (t) => {
  const rows: [name: string, text: string, problem: RegExp][] = [
    ['does not parse', '{"items":', /^not JSON/],
    [
      'has a duplicate id',
      textOf([...Array.from({ length: 10 }, (_, n) => item(n)), item(3)]),
      /listed twice/,
    ],
    ['is empty', textOf([]), /at least one/],
    ['shrinks by more than 20 %', feedText(7), /shrinks from 10 to 7 livestreams, more than 20 %/],
  ]
  for (const [name, text, problem] of rows) {
    t.test(name, async (t) => {
      const { source, write, errors } = await startOnFile(t, feedText(10))
      write(text)
      t.match(await source.refresh({ force: false }), { items: 10, itemsBefore: 10, ok: false, problem })
      t.equal(source.current()?.size, 10)
      await source.refresh({ force: false })
      t.equal(errors.length, 1, 'logged once, not at every refresh')
      write(feedText(11))
      t.match(await source.refresh({ force: false }), { items: 11, ok: true, problem: null })
    })
  }
})

t.test('a feed may shrink by 20 % and grow by 50 %', async (t) => {
  const { source, write } = await startOnFile(t, feedText(10))
  write(feedText(8))
  t.match(await source.refresh({ force: false }), { items: 8, ok: true })
  write(feedText(28))
  t.match(await source.refresh({ force: false }), { items: 28, ok: true }, 'a small one by 20')
})

t.test('force overrides the shrink guard and nothing else', async (t) => {
  const { source, write } = await startOnFile(t, feedText(10))
  write('{}')
  t.match(await source.refresh({ force: true }), { items: 10, ok: false })
  write(textOf([]))
  t.match(await source.refresh({ force: true }), { items: 10, ok: false })
  write(feedText(2))
  t.match(await source.refresh({ force: true }), { items: 2, itemsBefore: 10, ok: true })
  t.match(await source.refresh({ force: false }), { items: 2, ok: true }, 'and it is the measure from now on')
})

t.test('back to the feed in use is no problem any more', async (t) => {
  const { source, write } = await startOnFile(t, feedText(10))
  write('{}')
  t.match(await source.refresh({ force: false }), { ok: false })
  write(feedText(10))
  t.match(await source.refresh({ force: false }), { items: 10, ok: true, problem: null })
})

t.test('the log says that the feed is good again, once, also where it has not changed', async (t) => {
  const path = join(t.testdir({ 'feed.json': feedText(10) }), 'feed.json')
  const messages: string[] = []
  const log = pino({}, { write: (line: string) => messages.push(JSON.parse(line).msg) })
  const source = await startSource(t, { source: path, store: await openStore(t), log })
  for (const text of ['{}', feedText(10), feedText(10), '{}', feedText(11)]) {
    writeFileSync(path, text)
    await source.refresh({ force: false })
  }
  const refused = 'feed refused, the last good one stays'
  const expected = ['feed loaded', refused, 'the feed is good again', refused, 'feed loaded']
  t.same(messages, expected)
})

t.test('the last good feed survives a restart with the source gone', async (t) => {
  const { source, path, store } = await startOnFile(t, feedText(10))
  source.close()
  rmSync(path)
  const again = await startSource(t, { source: path, store, clock: () => start + 1000 })
  t.equal(again.current()?.size, 10)
  t.match(again.status(), {
    items: 10,
    ok: false,
    loadedAt: '2026-01-31T12:00:00.000Z',
    checkedAt: '2026-01-31T12:00:01.000Z',
    problem: /ENOENT/,
  })
})

t.test('when the feed was last found good survives a restart, also where it has not changed', async (t) => {
  const { source, path, store } = await startOnFile(t, feedText(10))
  source.close()
  const day = 24 * 3600 * 1000
  const later = await startSource(t, { source: path, store, clock: () => start + day })
  t.equal(later.confirmedAt(), start + day)
  later.close()
  rmSync(path)
  const again = await startSource(t, { source: path, store, clock: () => start + 2 * day })
  t.match(again.status(), { ok: false, loadedAt: '2026-01-31T12:00:00.000Z' })
  t.equal(again.confirmedAt(), start + day)
  again.close()
  // A confirmation of the first source does not count for a feed from another source.
  const other = join(t.testdir({ 'other.json': feedText(9) }), 'other.json')
  ;(await startSource(t, { source: other, store, clock: () => start + 3 * day })).close()
  const last = await startSource(t, { source: path, store, clock: () => start + 4 * day })
  t.equal(last.confirmedAt(), start + 3 * day)
})

t.test('a feed that has not changed is good, also where that cannot be stored', async (t) => {
  const path = join(t.testdir({ 'feed.json': feedText(10) }), 'feed.json')
  const store = await openStore(t)
  let isFull = false
  const commit: Store['commit'] = (changes) => {
    return isFull ? Promise.reject(new Error('no space left')) : store.commit(changes)
  }
  const lines: object[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  let now = start
  const source = await startSource(t, { source: path, store: { ...store, commit }, log, clock: () => now++ })
  isFull = true
  now = start + 1000
  t.match(await source.refresh({ force: false }), { items: 10, ok: true, problem: null })
  t.ok(Number(source.confirmedAt()) >= start + 1000)
  t.match(lines[0], { level: 40, err: { message: 'no space left' }, msg: /^the time of the last good feed/ })
})

t.test('the shrink guard holds over a restart', async (t) => {
  const { source, path, store, write } = await startOnFile(t, feedText(10))
  source.close()
  write(feedText(2))
  const again = await startSource(t, { source: path, store })
  t.match(again.status(), { items: 10, ok: false, problem: /shrinks from 10 to 2/ })
})

t.test('another source with fewer livestreams is no shrinking', async (t) => {
  const { source, store } = await startOnFile(t, feedText(10))
  source.close()
  const path = join(t.testdir(), 'other.json')
  writeFileSync(path, feedText(2))
  const again = await startSource(t, { source: path, store })
  t.match(again.status(), { source: path, items: 2, ok: true })
})

t.test('a feed that cannot be stored is not used, and nothing crashes', async (t) => {
  const path = join(t.testdir({ 'feed.json': feedText(10) }), 'feed.json')
  const store = await openStore(t)
  let isFull = true
  const commit: Store['commit'] = (changes) => {
    return isFull ? Promise.reject(new Error('no space left')) : store.commit(changes)
  }
  const source = await startSource(t, { source: path, store: { ...store, commit } })
  t.match(source.status(), { items: 0, ok: false, problem: 'no space left' })
  isFull = false
  t.match(await source.refresh({ force: false }), { items: 10, ok: true })
})

t.test('refreshes never overlap, and each sees the result of the one before', async (t) => {
  let open = 0
  let most = 0
  let served = 0
  const { source } = await startOnServer(t, async (_request, response) => {
    most = Math.max(most, ++open)
    served++
    // Answers in a later turn, so that a second request would overlap.
    setImmediate(() => {
      open--
      response.end(feedText(10 + served))
    })
  })
  const results = await Promise.all([1, 2, 3].map(() => source.refresh({ force: false })))
  t.equal(most, 1)
  t.strictSame(
    results.map(({ itemsBefore, items }) => [itemsBefore, items]),
    [
      [11, 12],
      [12, 13],
      [13, 14],
    ],
  )
})

t.test('the interval refreshes, and skips its turn while a refresh is under way', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const waiting: (() => void)[] = []
  const arrivals = new EventEmitter()
  let isSlow = false
  let requests = 0
  const { source } = await startOnServer(
    t,
    (_request, response) => {
      requests++
      const answer = () => response.end(feedText(10))
      if (isSlow) waiting.push(answer)
      else answer()
      arrivals.emit('request')
    },
    { intervalMs: 1000 },
  )
  const arrived = once(arrivals, 'request')
  mock.timers.tick(1000)
  await arrived
  await source.refresh({ force: false })
  t.equal(requests, 3, 'at the start, by the interval, and now')

  isSlow = true
  const slow = once(arrivals, 'request')
  mock.timers.tick(1000)
  await slow
  mock.timers.tick(10_000)
  isSlow = false
  const last = source.refresh({ force: false })
  for (const answer of waiting) answer()
  await last
  t.equal(requests, 5, 'the slow one and the last one')
})

t.test('over https an ETag saves the transfer', async (t) => {
  const seen: (string | undefined)[] = []
  let etag = '"v1"'
  let count = 10
  const { source } = await startOnServer(t, (request, response) => {
    seen.push(request.headers['if-none-match'])
    response.setHeader('etag', etag)
    if (request.headers['if-none-match'] === etag) response.writeHead(304).end()
    else response.end(feedText(count))
  })
  t.match(await source.refresh({ force: false }), { items: 10, ok: true }, '304')
  etag = '"v2"'
  count = 12
  t.match(await source.refresh({ force: false }), { items: 12, ok: true })
  etag = '"v3"'
  count = 1
  t.match(await source.refresh({ force: false }), { items: 12, ok: false })
  t.match(
    await source.refresh({ force: false }),
    { items: 12, ok: false },
    'a refused one is not taken for known',
  )
  t.strictSame(seen, [undefined, '"v1"', '"v1"', '"v2"', '"v2"'])
})

t.test('the ETag survives a restart', async (t) => {
  const seen: (string | undefined)[] = []
  const listener: RequestListener = (request, response) => {
    seen.push(request.headers['if-none-match'])
    if (request.headers['if-none-match'] === 'W/"v1"') response.writeHead(304).end()
    else response.setHeader('etag', 'W/"v1"').end(feedText(10))
  }
  const { source, url, store } = await startOnServer(t, listener)
  source.close()
  const again = await startSource(t, { source: url, store, fetchImpl: plainFetch })
  await again.refresh({ force: false })
  t.strictSame(new Set(seen), new Set([undefined, 'W/"v1"']))
  t.match(again.status(), { items: 10, ok: true })
})

t.test(
  'an ETag that cannot stand in a header does not keep a stored feed from being refreshed',
  async (t) => {
    const { source, url, store } = await startOnServer(t, (_request, response) => {
      response.setHeader('etag', '"v1"').end(feedText(10))
    })
    source.close()
    for (const etag of ['"v1"\r\nx: y', '"\u{1F4FB}"', 1, {}]) {
      for await (const [key, value] of store.range('feed/good/'))
        await store.commit([{ put: key, value: JSON.stringify({ ...JSON.parse(value.toString()), etag }) }])
      const again = await startSource(t, { source: url, store, fetchImpl: plainFetch })
      await again.refresh({ force: false })
      t.match(again.status(), { items: 10, ok: true, problem: null }, String(etag))
      again.close()
    }
  },
)

t.test('without an ETag nothing is made up', async (t) => {
  const seen: (string | undefined)[] = []
  const { source } = await startOnServer(t, (request, response) => {
    seen.push(request.headers['if-none-match'])
    response.end(feedText(10))
  })
  await source.refresh({ force: false })
  t.strictSame(seen, [undefined, undefined])
})

t.test('answers that are no feed', async (t) => {
  const rows: [name: string, listener: RequestListener, problem: RegExp][] = [
    ['404', (_request, response) => response.writeHead(404).end('gone'), /answered 404$/],
    ['500', (_request, response) => response.writeHead(500).end(feedText(3)), /answered 500$/],
    ['206', (_request, response) => response.writeHead(206).end(feedText(9)), /answered 206, a part/],
    ['a web page', (_request, response) => response.end('<!doctype html>'), /^not JSON/],
    ['cut off', (_request, response) => cutOff(response), /terminated/],
    ['connection closed', (request) => request.socket.destroy(), /fetch failed/],
    [
      'too large',
      (_request, response) => writeWithoutEnd(response),
      /^the answer is larger than 100000 bytes$/,
    ],
    ['never', () => {}, /timeout/],
    [
      'slow',
      (_request, response) => {
        response.write('{"items":[')
      },
      /timeout/,
    ],
  ]
  for (const [name, listener, problem] of rows) {
    t.test(name, async (t) => {
      const limits = { timeoutMs: 30_000, maxBytes: 100_000 }
      let isGood = true
      const { source } = await startOnServer(
        t,
        (request, response) => (isGood ? response.end(feedText(10)) : listener(request, response)),
        { limits },
      )
      isGood = false
      // Only an answer that never ends has to be given up soon.
      if (String(problem) === String(/timeout/)) limits.timeoutMs = 1_000
      t.match(await source.refresh({ force: false }), { items: 10, ok: false, problem })
      isGood = true
      limits.timeoutMs = 30_000
      t.match(await source.refresh({ force: false }), { items: 10, ok: true, problem: null })
    })
  }
})

t.test('a source that cannot be reached says which error it was', async (t) => {
  const server = createHttpServer()
  const port = await listen(t, server)
  server.close()
  await once(server, 'close')
  const source = await startSource(t, { source: `https://localhost:${port}/`, store: await openStore(t) })
  t.match(source.status(), { items: 0, ok: false, problem: /ECONNREFUSED/ })
})

t.test('redirects are followed from https to https only', async (t) => {
  const redirects: Record<string, string> = {
    'https://example/moved': '/feed',
    'https://example/elsewhere': 'https://other.example/feed',
    'https://example/plain': 'http://example/feed',
    // In the step without TLS, an attacker could redirect the hub anywhere.
    'https://example/by-plain': 'http://example/back',
    'http://example/back': 'https://other.example/feed',
    'https://example/loop': '/loop',
    'https://example/broken': 'https://',
  }
  const fetchImpl = async (url: unknown) => {
    const location = redirects[String(url)]
    return location === undefined
      ? new Response(feedText(10))
      : new Response(null, { status: 302, headers: { location } })
  }
  const rows: [path: string, status: object][] = [
    ['moved', { items: 10, problem: null }],
    ['elsewhere', { items: 10, problem: null }],
    ['plain', { items: 0, problem: 'redirected to http://example/feed, which is not https' }],
    ['by-plain', { items: 0, problem: 'redirected to http://example/back, which is not https' }],
    ['loop', { items: 0, problem: 'redirected more than 5 times' }],
    ['broken', { items: 0, problem: 'redirected to something that is no URL' }],
  ]
  for (const [path, status] of rows) {
    const directory = t.testdir({ [path]: {} })
    const store = await openStore(t, join(directory, path))
    const source = await startSource(t, { source: `https://example/${path}`, store, fetchImpl })
    t.match(source.status(), status, path)
  }
})

t.test('a token in the URL of a feed is in nothing that is said of it', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
  const store = await openStore(t)
  const source = 'https://feed.example/all?token=geheim'
  const answers: Partial<Response>[] = [
    { ok: true, status: 200, headers: new Headers(), body: new Response(feedText(10)).body },
    { ok: false, status: 500 },
    new Response(null, { status: 302, headers: { location: 'http://feed.example/all?token=geheim' } }),
  ]
  const fetchImpl = async () =>
    (answers.shift() ?? Promise.reject(new Error(`no way to ${source}`))) as Response
  const feed = await startSource(t, { source, store, log, fetchImpl })
  t.match(feed.status(), { items: 10, source: 'https://feed.example/all?token=***' })
  t.equal(feed.status().loadedFrom, 'https://feed.example/all?token=***')
  for (const problem of [/answered 500/, /redirected to .*token=\*\*\*,/, /no way to .*token=\*\*\*/]) {
    const status = await feed.refresh({ force: false })
    t.match(status.problem, problem)
    t.notMatch(JSON.stringify(status), 'geheim')
  }
  feed.close()
  // Another source on the same store: the log names both sources.
  await startSource(t, { source: join(t.testdir(), 'none.json'), store, log })
  for (const said of ['feed loaded', 'feed refused', 'comes from another source'])
    t.match(lines.join(''), said)
  t.notMatch(lines.join(''), 'geheim')
})

t.test('closing gives up a refresh that is under way, quietly', async (t) => {
  let arrived = () => {}
  const request = new Promise<void>((resolve) => (arrived = resolve))
  let isSlow = false
  const { source, errors } = await startOnServer(t, (_request, response) => {
    if (!isSlow) response.end(feedText(10))
    else arrived()
  })
  isSlow = true
  const refreshing = source.refresh({ force: false })
  await request
  source.close()
  t.match(await refreshing, { items: 10, ok: true })
  t.strictSame(errors, [])
})

t.test('over real TLS the certificate is checked', async (t) => {
  const certs = await ensureDevelopmentCertificates(join(t.testdir(), 'certs'))
  const server = createHttpsServer(
    { cert: readFileSync(certs.cert), key: readFileSync(certs.key) },
    (_request, response) => response.end(feedText(10)),
  )
  const url = `https://localhost:${await listen(t, server)}/feed.json`
  const untrusting = await startSource(t, { source: url, store: await openStore(t) })
  t.match(untrusting.status(), { items: 0, problem: /certificate/ })

  // Node.js reads NODE_EXTRA_CA_CERTS only at the start of a process.
  const [program = '', ...reader] = commandOf('test/validator/feed/read-feed.ts')
  const read = async (extra: string, ...named: string[]) => {
    const { stdout } = await promisify(execFile)(program, [...reader, url, t.testdirName, ...named], {
      cwd: root,
      env: { ...process.env, NODE_EXTRA_CA_CERTS: extra },
    })
    return JSON.parse(stdout)
  }
  const read10 = { items: 10, ok: true, problem: null }
  t.match(await read(certs.ca), read10)
  const other = await ensureDevelopmentCertificates(join(t.testdirName, 'other'))
  t.match(await read(other.ca, certs.ca), read10, 'by HUB_FEED_CA')
  t.match(await read(certs.ca, other.ca), read10, 'HUB_FEED_CA replaces no other CA')
})

t.test('a feed that changes all the time leaves no garbage that is as large as it', async (t) => {
  /** The memory that the thread gets for each feed that it packs. */
  const spare: (number | undefined)[] = []
  const watch = (worker: Worker) => {
    const { postMessage } = worker
    worker.postMessage = (task) => {
      spare.push(task.input.spare.feed?.byteLength)
      return postMessage.call(worker, task)
    }
  }
  process.on('worker', watch)
  t.teardown(() => process.off('worker', watch))
  const { source, write } = await startOnFile(t, textOf(changed(0)))
  // Otherwise memory of other sources could be freed meanwhile.
  collectGarbage()
  const buffers: number[] = []
  for (let round = 1; round <= 20; round++) {
    write(textOf(changed(round)))
    t.match(await source.refresh({ force: false }), { ok: true, items: 5_000 })
    buffers.push(process.memoryUsage().arrayBuffers)
  }
  const grown = (Math.max(...buffers) - Math.min(...buffers)) / 1024 / 1024
  t.ok(grown < 10, `what is read: ${grown.toFixed(1)} MiB`)
  t.ok(Math.min(...spare.slice(-15).map((bytes) => bytes ?? 0)) > 1024 * 1024, 'what is packed')

  function changed(round: number) {
    return Array.from({ length: 5_000 }, (_, index) => item(index + 1, 1, { title: `In round ${round}` }))
  }
})

type Options = Parameters<typeof createFeedSource>[0]
type Some = Partial<Options> & Pick<Options, 'source' | 'store'>

async function startSource(t: Test, options: Some): Promise<FeedSource> {
  const log = pino({ level: 'silent' })
  const source = await createFeedSource({ intervalMs: never, log, clock: () => start, ...options })
  t.teardown(source.close)
  return source
}

/** A feed source that reads a file with `text`. `errors` are the log lines of errors. */
async function startOnFile(t: Test, text: string) {
  const path = join(t.testdir({ 'feed.json': text }), 'feed.json')
  const errors: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) })
  const store = await openStore(t)
  const source = await startSource(t, { source: path, store, log })
  return { source, path, store, errors, write: (text: string) => writeFileSync(path, text) }
}

/** A feed source that reads from a server of the test, over plain HTTP. */
async function startOnServer(t: Test, listener: RequestListener, options: Partial<Options> = {}) {
  const server = createHttpServer(listener)
  const url = `https://127.0.0.1:${await listen(t, server)}/feed.json`
  const errors: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) })
  const store = await openStore(t)
  const source = await startSource(t, { source: url, store, log, fetchImpl: plainFetch, ...options })
  return { source, url, store, errors }
}

const plainFetch: typeof fetch = (url, init) => fetch(String(url).replace('https:', 'http:'), init)

function cutOff(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': 1000 })
  response.write('{"items":[', () => response.destroy())
}

function writeWithoutEnd(response: ServerResponse): void {
  const more = () => {
    while (response.writable && response.write(' '.repeat(10_000))) {}
  }
  response.on('drain', more)
  more()
}
