import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createCalls } from '../../store/nodes/calls.ts'
import { createFeedSource } from '../../validator/feed/feed-source.ts'
import { createSharedSpace, type SharedSpace, settled } from '../shared-store.ts'
import { feedText } from '../validator/feeds.ts'

const log = pino({ level: 'silent' })
const url = 'https://feed.example/feed.json'

/** Opens a node. `isAlone`: it takes the others for gone. */
async function openNode(
  t: Test,
  space: SharedSpace,
  source: string,
  { fetchImpl, isAlone = false }: { fetchImpl?: typeof fetch; isAlone?: boolean } = {},
) {
  const store = space.openFollowed(t)
  const self = randomUUID()
  const nodes = {
    self,
    isLiving: (node: string) => !isAlone && !gone.has(node),
    nameOf: (node: string) => node,
    living: () => [],
  }
  const feed = await createFeedSource({
    source,
    store,
    nodes,
    calls: createCalls({ store, nodes }),
    log,
    clock: Date.now,
    intervalMs: 1_000_000_000,
    ...(fetchImpl && { fetchImpl }),
  })
  t.teardown(feed.close)
  store.start()
  return { store, feed, leave: () => gone.add(self) }
}

const gone = new Set<string>()

/** Resolves when the node uses what the others have stored. */
async function caughtUp({ store, feed }: Awaited<ReturnType<typeof openNode>>): Promise<void> {
  await settled(store)
  await feed.takenOver()
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

t.test('one node decides for all, about good feeds and others', async (t) => {
  const space = createSharedSpace()
  const { served, fetchImpl } = serve(feedText(10))
  const a = await openNode(t, space, url, { fetchImpl })
  const b = await openNode(t, space, url, { fetchImpl: () => Promise.reject(new Error('unreachable')) })
  t.match(b.feed.status(), { ok: true, items: 10 })
  served.text = feedText(5)
  t.match(await a.feed.refresh({ force: false }), { ok: false, items: 10 })
  await caughtUp(b)
  t.match(b.feed.status(), { ok: false, items: 10, reason: 'shrink', problem: /from 10 to 5/ })
  t.match(await b.feed.refresh({ force: true }), { ok: true, items: 5, itemsBefore: 10 }, 'by the other node')
  t.same(await b.feed.lookup('urn:org:permanent-livestream:6'), [])
  t.ok(b.feed.former.byId.get('urn:org:permanent-livestream:6'), 'it knows what fell out')
  t.equal(a.feed.status().items, 5)
  t.equal(b.feed.confirmedAt(), a.feed.confirmedAt())
})

t.test('a refresh asks the source once, however many nodes there are', async (t) => {
  const space = createSharedSpace()
  const { served, fetchImpl } = serve(feedText(10))
  const nodes = [
    await openNode(t, space, url, { fetchImpl }),
    await openNode(t, space, url, { fetchImpl }),
    await openNode(t, space, url, { fetchImpl }),
  ] as const
  for (const { feed } of nodes) await feed.refresh({ force: false })
  t.equal(served.asked, 4, 'at the start of the first, and for each refresh')
})

t.test('if the node that decides is gone, another one takes its place', async (t) => {
  const space = createSharedSpace()
  const { served, fetchImpl } = serve(feedText(10))
  const a = await openNode(t, space, url, { fetchImpl })
  const b = await openNode(t, space, url, { fetchImpl })
  const c = await openNode(t, space, url, { fetchImpl: () => Promise.reject(new Error('unreachable')) })
  a.leave()
  a.feed.close()
  served.text = feedText(12)
  t.match(await b.feed.refresh({ force: false }), { ok: true, items: 12 })
  await caughtUp(c)
  t.match(c.feed.status(), { ok: true, items: 12 })
  t.match(await c.feed.refresh({ force: false }), { ok: true, items: 12 }, 'by the second')
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
  const a = await openNode(t, space, url, { fetchImpl: slowly })
  // It takes the first node for gone, and reads the feed as well.
  const b = await openNode(t, space, url, { fetchImpl, isAlone: true })
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

t.test('the file of one node counts for all', async (t) => {
  const path = join(t.testdir({ 'feed.json': feedText(10) }), 'feed.json')
  const space = createSharedSpace()
  const a = await openNode(t, space, path)
  const b = await openNode(t, space, path)
  writeFileSync(path, feedText(9))
  await a.feed.refresh({ force: false })
  writeFileSync(path, feedText(8))
  await caughtUp(b)
  t.match(b.feed.status(), { ok: true, items: 9 })
})

t.test('a node with another source keeps its own feed', async (t) => {
  const space = createSharedSpace()
  const a = await openNode(t, space, url, { fetchImpl: serve(feedText(10)).fetchImpl })
  const b = await openNode(t, space, 'https://other.example/', { fetchImpl: serve(feedText(3)).fetchImpl })
  await settled(a.store, b.store)
  t.equal(a.feed.status().items, 10)
  t.equal(b.feed.status().items, 3)
})

t.test('a store that fails does not fail the refresh', async (t) => {
  const space = createSharedSpace()
  const a = await openNode(t, space, url, { fetchImpl: serve(feedText(10)).fetchImpl })
  a.store.cut()
  t.match(await a.feed.refresh({ force: false }), { ok: true, items: 10 })
})
