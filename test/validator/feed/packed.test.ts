import { join } from 'node:path'
import t, { type Test } from 'tap'
import { judgeService } from '../../../validator/verdict.ts'
import { openApi } from '../../bridge-https/api.ts'
import { startTestHub } from '../../start-hub.ts'
import { feedOf, feedText, item, livestreamOf } from '../feeds.ts'

/* How many livestreams a question unpacks, and in how many turns: no event waits for a large feed (design.md §6). */

const count = 5_000
const many = feedOf(...Array.from({ length: count }, (_, n) => item(n + 1)))
const nobody = { get: () => undefined }
const former = { byId: nobody, byExternalId: nobody, likeExternalId: () => [] }

t.test('an event unpacks its own livestream, however many its publisher has', async (t) => {
  const { publisher, institution, externalId, id } = livestreamOf(7)
  const unpacked = countUnpacked(t)
  const judge = (externalId: string) =>
    judgeService(
      { type: 'PermanentLivestream', externalId, publisherId: publisher.id },
      '.services.0',
      institution.id,
      { feed: many, former, ownerOf: () => undefined },
    )
  t.match(judge(externalId), { livestreamId: id, isUnlisted: false })
  t.equal(unpacked.all, 1)
  t.match(judge('crid://example/made-up'), { isUnlisted: true })
  t.ok(many.hasInstitution(institution.id))
  t.same(many.institutions(), [institution.id])
  t.equal(unpacked.all, 1)
})

t.test('a question about all livestreams unpacks some in each turn', async (t) => {
  const path = join(t.testdir({ 'feed.json': feedText(count) }), 'feed.json')
  const hub = await startTestHub(t, { HUB_FEED: path, HUB_PUBLIC_PAGE: 'true' })
  const api = await openApi(t, hub)
  const questions: Record<string, () => Promise<unknown>> = {
    'all livestreams': () => hub.ask('feed.lookup', {}),
    'those of a publisher': () => hub.ask('feed.lookup', { id: livestreamOf(1).publisher.id }),
    'those of a name': () => hub.ask('feed.lookup', { id: 'Station' }),
    'events of a title': () => hub.ask('events.list', { livestream: 'Station 7' }),
    'their newest events': () => hub.ask('events.newest', {}),
    'their subscribers': () => hub.ask('clients.count', {}),
    'their names': () => api.call('GET', '/livestreams', {}),
  }
  for (const [question, ask] of Object.entries(questions)) {
    const unpacked = countUnpacked(t)
    await ask()
    unpacked.stop()
    t.equal(unpacked.all, count, question)
    t.ok(unpacked.mostInTurn <= 1_000, `${question}: at most 1,000 in one turn, ${unpacked.mostInTurn}`)
  }
})

/** Counts the livestreams that are unpacked from now on, all of them and the most in one turn of the event loop. */
function countUnpacked(t: Test) {
  const { parse } = JSON
  const counts = { all: 0, mostInTurn: 0, stop }
  let inTurn = 0
  let turn = setImmediate(nextTurn)
  JSON.parse = (text, reviver) => {
    if (String(text).startsWith('{"id":"urn:org:permanent-livestream:')) {
      counts.all++
      counts.mostInTurn = Math.max(counts.mostInTurn, ++inTurn)
    }
    return parse(text, reviver)
  }
  t.teardown(stop)
  return counts

  function nextTurn() {
    inTurn = 0
    turn = setImmediate(nextTurn)
  }

  function stop() {
    clearImmediate(turn)
    JSON.parse = parse
  }
}
