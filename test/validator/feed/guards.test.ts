import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import pino from 'pino'
import t, { type Test } from 'tap'
import type { Store } from '../../../store/store.ts'
import { createFeedSource, type FeedSource } from '../../../validator/feed/feed-source.ts'
import { type FeedReason, feedReasons, feedRefusals } from '../../../validator/feed/refusals.ts'
import { listen } from '../../listen.ts'
import { openStore } from '../../open-store.ts'
import { feedText, item, textOf } from '../feeds.ts'

/* When a feed is taken, and when not. */

/** The thread that looked at a feed last. */
let thread: Worker | undefined
process.on('worker', (started) => {
  thread = started
})

t.test('a page of a feed is refused, and says which', async (t) => {
  const items = Array.from({ length: 10 }, (_, index) => item(index))
  const page = { totalItemCount: 60, totalPageCount: 6, pageItemCount: 10, pageIndex: 0, items }
  const rows: [document: object, problem: RegExp][] = [
    [page, /page 1 of 6/],
    [{ ...page, totalPageCount: '6' }, /page 1 of 6/],
    [{ totalItemCount: 60, items }, /10 of 60 livestreams/],
    [{ ...page, totalPageCount: `${' '.repeat(1000)}6` }, /^it is page 1 of 6,/],
  ]
  for (const [document, problem] of rows) {
    const { source, write } = await startOnFile(t, feedText(10))
    write(JSON.stringify(document))
    t.match(await source.refresh({ force: true }), { items: 10, ok: false, problem })
  }
  const { source, write } = await startOnFile(t, feedText(10))
  write(JSON.stringify({ ...page, totalItemCount: 10, totalPageCount: 1 }))
  t.match(await source.refresh({ force: false }), { ok: true, problem: null })
})

t.test('a feed with a link to a next page is refused', async (t) => {
  for (const [link, ok] of [
    ['<https://feed.example/?page=2>; rel="next"', false],
    ['</a>; rel=first, </b?rel=x>; title="a, b"; rel=next', false],
    ['</b>; rel="last NEXT"', false],
    ['</a?;rel=next>; rel="prev"', true],
    ['</a>; rel="nextish"', true],
    ['</a>; title="x; rel=next"', true],
    ['</a>; title="\\"; rel=next"', true],
    ['</a>; title="x; rel=prev"; REL = next', false],
  ] as const) {
    const source = await startOnServer(t, (_request, response) =>
      response.setHeader('link', link).end(feedText(10)),
    )
    t.match(source.status(), { ok, ...(!ok && { problem: /next page/ }) }, link)
  }
})

t.test('a feed that is not UTF-8 is refused, a byte order mark is skipped', async (t) => {
  const { source, write } = await startOnFile(t, feedText(10))
  const text = textOf(Array.from({ length: 10 }, (_, n) => item(n, 1, { title: 'Küstenwelle' })))
  write(Buffer.from(text, 'latin1'))
  t.match(await source.refresh({ force: true }), { items: 10, ok: false, problem: /not UTF-8/ })
  write(Buffer.from(`\uFEFF${text}`))
  t.match(await source.refresh({ force: false }), { ok: true, problem: null })
  t.match(await source.lookup('urn:org:permanent-livestream:1'), [{ title: 'Küstenwelle' }])
})

t.test('a text that is half a character is refused', async (t) => {
  const { source, write } = await startOnFile(t, feedText(10))
  const text = feedText(10)
  write(text.replace('Station 4', 'Best of \\ud83c'))
  t.match(await source.refresh({ force: true }), { ok: false, problem: /^items\.3\.title: half a character/ })
  write(text.replace('Station 4', 'Best of \\ud83c\\udf1f'))
  t.match(await source.refresh({ force: false }), { ok: true })
})

t.test('a feed that grows by more than 50 % and 20 livestreams waits for --force', async (t) => {
  const { source, write } = await startOnFile(t, feedText(12))
  write(feedText(212))
  const problem = /grows from 12 to 212 livestreams, .*--force/
  t.match(await source.refresh({ force: false }), { items: 12, ok: false, problem })
  write(feedText(12))
  t.match(await source.refresh({ force: false }), { items: 12, ok: true })
  write(feedText(32))
  t.match(await source.refresh({ force: false }), { items: 32, ok: true }, 'by 20')
  write(feedText(48))
  t.match(await source.refresh({ force: false }), { items: 48, ok: true }, 'by 50 %')
  write(feedText(212))
  t.match(await source.refresh({ force: true }), { items: 212, ok: true })
})

t.test('a pipe without a writer is no feed', async (t) => {
  const { source, path } = await startOnFile(t, feedText(10))
  rmSync(path)
  execFileSync('mkfifo', [path])
  t.match(await source.refresh({ force: true }), { items: 10, ok: false, problem: /is no file$/ })
})

t.test('304 to a request without a condition is no feed', async (t) => {
  const source = await startOnServer(t, (_request, response) => response.writeHead(304).end())
  t.match(source.status(), { items: 0, ok: false, problem: /304/ })
})

t.test('more than 50,000 livestreams are refused', async (t) => {
  const { source, write } = await startOnFile(t, feedText(10))
  write(feedText(50_001))
  t.match(await source.refresh({ force: true }), { items: 10, ok: false, problem: /50001.*50000/ })
})

t.test('the reason of each refusal is in the table, and --force takes what the table says', async (t) => {
  const ten = Array.from({ length: 10 }, (_, n) => item(n + 1, n === 9 ? 2 : 1))
  const others = Array.from({ length: 31 }, (_, n) => item(n + 11))
  const changed = (fields: object) => textOf([...ten.slice(0, 9), { ...ten[9], ...fields }])
  const rows: Record<string, string | Buffer | undefined> = {
    source: undefined,
    'too-large': ' '.repeat(200_000),
    encoding: Buffer.from([0xff]),
    json: '{',
    text: '{"items":[{"\\udc00":1}]}',
    shape: changed({ id: 1 }),
    duplicate: changed({ id: ten[0]?.id }),
    partial: JSON.stringify({ items: ten, totalItemCount: 11 }),
    shrink: textOf(ten.slice(2, 9)),
    growth: textOf([...ten, ...others]),
    canary: textOf([...ten.slice(1), item(11)]),
    institution: textOf(ten.slice(0, 9)),
  }
  const elsewhere = ['not-modified', 'too-many', 'unfinished', 'store']
  t.same([...Object.keys(rows), ...elsewhere].sort(), [...feedReasons].sort())
  const canaries = [ten[0]?.id ?? '', item(77).id]
  for (const [reason, text] of Object.entries(rows)) {
    const limits = { timeoutMs: 30_000, maxBytes: 100_000 }
    const { source, path, write } = await startOnFile(t, textOf(ten), { canaries, limits })
    t.same(source.status().ignoredCanaries, [item(77).id], 'which the feed never had')
    source.guardPublishers(async () => [item(1, 2).publisher.institution.id, 'urn:org:institution:77'])
    if (text === undefined) rmSync(path)
    else write(text)
    t.match(await source.refresh({ force: false }), { reason, ok: false, items: 10 }, reason)
    const isTaken = feedRefusals[reason as FeedReason].force
    t.match(
      await source.refresh({ force: true }),
      isTaken ? { reason: null, ok: true } : { reason, items: 10 },
      reason,
    )
  }
})

t.test(
  'a feed without the institution of a connected publisher is held back for three refreshes',
  async (t) => {
    const text = textOf([...Array.from({ length: 9 }, (_, n) => item(n)), item(9, 2)])
    const { source, write, again } = await startOnFile(t, text)
    const guard = ({ guardPublishers }: FeedSource) => guardPublishers(async () => ['urn:org:institution:2'])
    guard(source)
    const without = (title: string) => textOf(Array.from({ length: 9 }, (_, n) => item(n, 1, { title })))
    write(without('a'))
    const held = { ok: false, reason: 'institution', items: 10 }
    t.match(await source.refresh({ force: false }), { ...held, problem: /urn:org:institution:2.* 2 more/ })
    write(text)
    t.match(await source.refresh({ force: false }), { ok: true }, 'and the count begins anew')
    for (const title of ['b', 'c']) {
      write(without(title))
      t.match(await source.refresh({ force: false }), held)
    }
    source.close()
    write('{')
    const restarted = await again()
    guard(restarted)
    t.match(restarted.status(), { reason: 'json' })
    write(without('d'))
    t.match(await restarted.refresh({ force: false }), { ...held, problem: /the next refresh takes it/ })
    t.match(await restarted.refresh({ force: false }), { ok: true, items: 9 })
  },
)

t.test(
  'on the way back to an earlier source the feed is compared with the last good one of it',
  async (t) => {
    const { source, path, write, again } = await startOnFile(t, feedText(10))
    source.close()
    const other = `${path}.other`
    writeFileSync(other, feedText(3))
    const second = await again(other)
    t.match(second.status(), { ok: true, items: 3 })
    second.close()
    write(feedText(4))
    const third = await again()
    t.match(third.status(), { ok: false, reason: 'shrink', items: 3, loadedFrom: other })
    write(feedText(10))
    t.match(await third.refresh({ force: false }), { ok: true, items: 10, loadedFrom: path })
  },
)

t.test('what fell out of the feed is known after a restart', async (t) => {
  const { source, write, again } = await startOnFile(t, feedText(10))
  write(feedText(9))
  t.match(await source.refresh({ force: false }), { ok: true })
  t.match(source.former.byId.get(item(10).id), { id: item(10).id })
  source.close()
  const restarted = await again()
  t.match(restarted.former.byExternalId.get(item(10).externalId), [{ id: item(10).id }])
})

t.test('a fault that passes while a stored feed is read ends the start, and loses nothing', async (t) => {
  const { source, store, path, write } = await startOnFile(t, feedText(10))
  write(feedText(9))
  t.match(await source.refresh({ force: false }), { ok: true })
  source.close()
  for (const kind of ['good/', 'dropped']) {
    const failing: Store = {
      ...store,
      async get(key) {
        if (key.startsWith(`feed/${kind}`)) {
          await thread?.terminate()
          process.once('worker', (started) => void started.terminate())
        }
        return store.get(key)
      },
    }
    await t.rejects(start(t, path, failing, {}), { message: RegExp(`^feed/${kind}.*the thread .*ended`) })
  }
  const restarted = await start(t, path, store, {})
  t.match(restarted.former.byId.get(item(10).id), { id: item(10).id })
})

t.test('a stored feed that is damaged is ignored', async (t) => {
  const { source, store, again } = await startOnFile(t, feedText(10))
  source.close()
  const damaged: string[] = []
  for await (const [key] of store.range('feed/')) damaged.push(key)
  t.equal(damaged.length, 3)
  await store.commit(damaged.map((put) => ({ put, value: 'not json' })))
  t.match((await again()).status(), { ok: true, items: 10 })
})

t.test('diff says what would change, and changes nothing', async (t) => {
  const { source, path, write } = await startOnFile(t, feedText(10))
  const { publisher } = item(1, 2)
  const kept = Array.from({ length: 7 }, (_, n) => item(n + 1))
  const many = Array.from({ length: 150 }, (_, n) => item(n + 100))
  const [first, second, third, ...rest] = kept
  const renamed = { ...second, externalId: 'crid://example/new' }
  write(textOf([{ ...first, publisher }, renamed, { ...third, title: 'New' }, ...rest, ...many]))
  const { id } = item(1)
  t.match(await source.diff(), {
    source: path,
    loadedFrom: path,
    itemsBefore: 10,
    items: 157,
    reason: 'growth',
    problem: /--force/,
    differences: {
      added: { count: 150, items: { length: 100 } },
      removed: {
        count: 3,
        items: [{ id: item(8).id, title: 'Station 8', institution: 'Institution 1' }, {}, {}],
      },
      owners: {
        count: 1,
        items: [
          {
            id,
            before: { institution: 'urn:org:institution:1' },
            after: { institution: 'urn:org:institution:2' },
          },
        ],
      },
      renamed: { count: 1, items: [{ before: 'crid://example/2', after: 'crid://example/new' }] },
      retitled: { count: 1 },
    },
  })
  t.match(source.status(), { items: 10, ok: true })
  rmSync(path)
  t.match(await source.diff(), { reason: 'source', problem: /ENOENT/, items: null, differences: null })
})

t.test('a feed is parsed and compared in another thread', async (t) => {
  const { source, write } = await startOnFile(t, feedText(10))
  write(feedText(12))
  const parse = t.capture(JSON, 'parse')
  t.match(await source.refresh({ force: false }), { items: 12, ok: true })
  const parsed = parse().flatMap(({ args: [text] }) => (String(text).includes('items') ? [text] : []))
  t.same(parsed, [], 'this thread has not parsed it')
})

t.test('a feed that would take too much memory is refused', async (t) => {
  const { source, write } = await startOnFile(t, feedText(10))
  write(`{"items":[${'{},'.repeat(2_000_000)}{}]}`)
  t.match(await source.refresh({ force: true }), {
    reason: 'unfinished',
    problem: /2000000 objects/,
    items: 10,
  })
})

async function startOnFile(
  t: Test,
  text: string,
  options: Options = {},
  prepare: (store: Store, path: string) => Promise<void> = async () => {},
) {
  const path = join(t.testdir({ 'feed.json': text }), 'feed.json')
  const store = await openStore(t)
  await prepare(store, path)
  return {
    source: await start(t, path, store, options),
    path,
    store,
    write: (text: string | Buffer) => writeFileSync(path, text),
    again: (source = path) => start(t, source, store, options),
  }
}

async function startOnServer(t: Test, listener: RequestListener) {
  const server = createServer(listener)
  const port = await listen(t, server)
  const fetchImpl: typeof fetch = (url, init) => fetch(String(url).replace('https:', 'http:'), init)
  return start(t, `https://127.0.0.1:${port}/feed.json`, await openStore(t), { fetchImpl })
}

type Options = Partial<Parameters<typeof createFeedSource>[0]>

async function start(t: Test, source: string, store: Store, options: Options) {
  const log = pino({ level: 'silent' })
  const always = { intervalMs: 1_000_000_000, clock: Date.now }
  const started = await createFeedSource({ source, store, log, ...always, ...options })
  t.teardown(started.close)
  return started
}
