import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createFeedSource } from '../../validator/feed/feed-source.ts'
import { createSharedSpace, type SharedSpace, settled } from '../shared-store.ts'
import { feedText } from '../validator/feeds.ts'

const log = pino({ level: 'silent' })
const url = 'https://feed.example/feed.json'

async function openNode(
  t: Test,
  space: SharedSpace,
  source: string,
  fetchImpl?: typeof fetch,
  onFeed = () => {},
) {
  const store = space.openFollowed(t)
  store.onOthers('feed/', onFeed)
  const feed = await createFeedSource({
    ...{ source, store, log, clock: Date.now, intervalMs: 1_000_000_000 },
    ...(fetchImpl && { fetchImpl }),
  })
  t.teardown(feed.close)
  store.start()
  return { store, feed }
}

/** A feed server that counts its requests. */
function serve(text: string) {
  const served = { text, asked: 0 }
  const fetchImpl: typeof fetch = async () => {
    served.asked++
    return new Response(served.text)
  }
  return { served, fetchImpl }
}

t.test('a feed that one node loaded is in use on all', async (t) => {
  const space = createSharedSpace()
  const { served, fetchImpl } = serve(feedText(10))
  const a = await openNode(t, space, url, fetchImpl)
  const b = await openNode(t, space, url, () => Promise.reject(new Error('unreachable')))
  t.equal(b.feed.status().items, 10)
  served.text = feedText(5)
  t.match(await a.feed.refresh({ force: false }), { ok: false, items: 10 })
  t.match(await a.feed.refresh({ force: true }), { ok: true, items: 5 })
  t.equal(b.feed.status().items, 5, 'before the refresh is answered')
  t.equal(b.feed.lookup('urn:org:permanent-livestream:6').length, 0)
})

t.test('a refresh on one node is one on every node', async (t) => {
  const space = createSharedSpace()
  const { served, fetchImpl } = serve(feedText(10))
  const a = await openNode(t, space, url, fetchImpl)
  await openNode(t, space, url, fetchImpl)
  await openNode(t, space, url, fetchImpl)
  served.asked = 0
  await a.feed.refresh({ force: false })
  while (served.asked < 3) await nextTurn()
  t.equal(served.asked, 3)
})

t.test('an answer that took long does not replace the newer feed of another node', async (t) => {
  const space = createSharedSpace()
  const { served, fetchImpl } = serve(feedText(10))
  let answerNow = () => {}
  let isSlow = false
  const slowly: typeof fetch = async (...of) => {
    const answer = await fetchImpl(...of)
    if (!isSlow) return answer
    await new Promise<void>((resolve) => {
      answerNow = resolve
    })
    return answer
  }
  const a = await openNode(t, space, url, slowly)
  const b = await openNode(t, space, url, fetchImpl)
  served.text = feedText(9)
  isSlow = true
  served.asked = 0
  const refreshed = a.feed.refresh({ force: false })
  while (served.asked === 0) await nextTurn()
  isSlow = false
  served.text = feedText(8)
  t.match(await b.feed.refresh({ force: true }), { items: 8 })
  await settled(a.store, b.store)
  answerNow()
  t.match(await refreshed, { ok: true, items: 8 })
  await settled(a.store, b.store)
  t.equal(b.feed.status().items, 8)
})

t.test('a file is read by each node for itself', async (t) => {
  const path = join(t.testdir({ 'feed.json': feedText(10) }), 'feed.json')
  const space = createSharedSpace()
  const a = await openNode(t, space, path)
  let heard = 0
  // Node b stands for another machine: its file has 8 items when b hears of the refresh.
  const b = await openNode(t, space, path, undefined, () => {
    if (heard++ === 0) writeFileSync(path, feedText(8))
  })
  writeFileSync(path, feedText(9))
  await a.feed.refresh({ force: false })
  t.equal(a.feed.status().items, 9)
  while (b.feed.status().items === 10) await nextTurn()
  t.match(b.feed.status(), { ok: true, items: 8 })
})

t.test('a node with another source keeps its own feed', async (t) => {
  const space = createSharedSpace()
  const a = await openNode(t, space, url, serve(feedText(10)).fetchImpl)
  const b = await openNode(t, space, 'https://other.example/', serve(feedText(3)).fetchImpl)
  await settled(a.store, b.store)
  t.equal(a.feed.status().items, 10)
  t.equal(b.feed.status().items, 3)
})

t.test('a store that fails does not fail the refresh', async (t) => {
  const space = createSharedSpace()
  const a = await openNode(t, space, url, serve(feedText(10)).fetchImpl)
  a.store.cut()
  t.match(await a.feed.refresh({ force: false }), { ok: true, items: 10 })
})
