import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import type { Change } from '../../../store/store.ts'
import { openApi } from '../../bridge-https/api.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, onStore, openStoreOf } from '../../stores.ts'

/* A node whose HUB_FEED was changed. */

interface Status {
  source: string
  loadedFrom: string | null
  items: number
  ok: boolean
  problem: string | null
}
const status = (hub: TestHub) => hub.ask<Status>('feed.status')
const warnings = (hub: TestHub) =>
  hub.lines.filter(({ level, msg }) => level === 40 && /another source/.test(String(msg)))

/** With which Prometheus reads the metrics, as stage `prod` demands. */
const token = 'prometheus-0123456789'

for (const stage of ['test', 'prod']) {
  onEachStore(`the sample feed is not kept for another source, stage ${stage}`, async (t, store) => {
    const home = await temporaryDirectory(t)
    const env = { ...store, HUB_STAGE: stage, HUB_METRICS_TOKEN: token }
    const sample = await startTestHub(t, env, home)
    t.match(await status(sample), { source: sampleFeedPath, loadedFrom: sampleFeedPath, items: 60, ok: true })
    await sample.close()

    const feed = join(home, 'own.json')
    const hub = await startTestHub(t, { ...env, HUB_FEED: feed }, home)
    t.match(await status(hub), { source: feed, loadedFrom: null, items: 0, ok: false, problem: /ENOENT/ })
    const api = await openApi(t, hub)
    t.match(await api.call('GET', '/health'), { status: 503, json: { feed: false } })
    const { text } = await api.call('GET', '/metrics', { token })
    t.match(text, /^hub_feed_ok 0$/m)
    t.notMatch(text, /^hub_feed_age_seconds /m, 'the alert HubFeedMissing needs this')
    await copyFile(sampleFeedPath, feed)
    t.match(await hub.ask('feed.refresh', { force: false }), { source: feed, loadedFrom: feed, ok: true })
    t.match(await api.call('GET', '/health'), { status: 200 })
    t.same(warnings(hub), [])
  })

  onEachStore(`a real feed is kept for another source, with warnings, stage ${stage}`, async (t, store) => {
    const home = await temporaryDirectory(t)
    const [first, second] = [join(home, 'first.json'), join(home, 'second.json')]
    const { items } = JSON.parse(await readFile(sampleFeedPath, 'utf8'))
    await writeFile(first, JSON.stringify({ items: items.slice(0, 12) }))
    const env = { ...store, HUB_STAGE: stage }
    await (await startTestHub(t, { ...env, HUB_FEED: first }, home)).close()

    const hub = await startTestHub(t, { ...env, HUB_FEED: second }, home)
    t.match(await status(hub), { source: second, loadedFrom: first, items: 12, ok: false, problem: /ENOENT/ })
    t.match(warnings(hub), [{ source: second, loadedFrom: first }])
    await hub.ask('feed.refresh', { force: false })
    t.equal(warnings(hub).length, 2, 'at each refresh')
    const api = await openApi(t, hub)
    t.match(await api.call('GET', '/health'), { status: 200 })
    t.match(await hub.ask('status'), { feed: { source: second, loadedFrom: first } })
    await copyFile(sampleFeedPath, second)
    t.match(await hub.ask('feed.refresh', { force: false }), { loadedFrom: second, items: 60, ok: true })
    t.equal(warnings(hub).length, 2, 'no more')
  })
}

onEachStore('the sample feed of a release that lay elsewhere is known as such', async (t, store) => {
  const home = await temporaryDirectory(t)
  const elsewhere = join(home, 'now-playing-hub-2', 'dist', 'config', 'sample-feed.json')
  await mkdir(dirname(elsewhere), { recursive: true })
  const before = await startTestHub(t, store, home)
  await before.close()
  const opened = await openStoreOf(store, join(home, 'data'))
  const moved: Change[] = []
  for await (const [put, value] of opened.range('feed/')) {
    const record = JSON.parse(value.toString())
    // The sample feed of that release had another content.
    const former = { ...record, source: elsewhere, digest: '' }
    if (record.source !== undefined) moved.push({ put, value: JSON.stringify(former) })
  }
  t.equal(moved.length, 2)
  await opened.commit(moved)
  await opened.close()
  const feed = join(home, 'own.json')
  const changed = await startTestHub(t, { ...store, HUB_FEED: feed }, home)
  t.match(await status(changed), { loadedFrom: null, items: 0, ok: false })
  await changed.close()
  const sample = await startTestHub(t, store, home)
  t.match(await status(sample), { loadedFrom: sampleFeedPath, items: 60, ok: true })
  t.same(warnings(sample), [])
})

onStore(
  'redis',
  'a node with a changed source that cannot be read keeps no sample of the others',
  async (t, store) => {
    const home = await temporaryDirectory(t)
    const a = await startTestHub(t, store, join(home, 'a'))
    const feed = join(home, 'own.json')
    const b = await startTestHub(t, { ...store, HUB_FEED: feed }, join(home, 'b'))
    t.match(await status(b), { loadedFrom: null, items: 0 })
    await a.ask('feed.refresh', { force: true })
    t.match(await status(b), { loadedFrom: null, items: 0 })
    await copyFile(sampleFeedPath, feed)
    t.match(await b.ask('feed.refresh', { force: false }), { loadedFrom: feed, items: 60, ok: true })
    t.match(await status(a), { source: sampleFeedPath, loadedFrom: sampleFeedPath })
  },
)
