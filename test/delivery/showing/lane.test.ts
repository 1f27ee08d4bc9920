import { EventEmitter, once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { urlTemplate } from '../../../delivery/outputs/url-template/url-template.ts'
import { createLane } from '../../../delivery/showing/lane.ts'
import type { OutputAttempt } from '../../../delivery/showing/senders/senders.ts'
import { createSlots } from '../../../delivery/showing/slots.ts'

const livestreamId = 'urn:org:permanent-livestream:4638c4eac849c618'
const settings = {
  name: 'web',
  driver: 'url-template',
  url: 'http://h/?t={title}',
  livestreams: { [livestreamId]: 'first' },
}

/** A lane whose other side answers as `result` says. `sent` grows, and tells each attempt as the event `sent`. */
function openLane(t: Test) {
  const stopping = new AbortController()
  const attempts = new EventEmitter()
  const sent: string[] = []
  const world = {
    title: undefined as string | undefined,
    result: 'acknowledged' as OutputAttempt['result'],
    ahead: 0,
    isStale: false,
  }
  const lane = createLane({
    output: urlTemplate,
    settings,
    there: 'first',
    wanted: async () => ({
      wanted: world.title === undefined ? undefined : { ...wanted(world.title), isStale: world.isStale },
      until: Infinity,
    }),
    mayDeliver: async () => true,
    senders: {
      async send(request) {
        sent.push('url' in request ? decodeURIComponent(request.url.split('t=')[1] ?? '') : '')
        queueMicrotask(() => attempts.emit('sent'))
        return { result: world.result, reason: null, request: '', answer: null, status: null }
      },
      look: async () => undefined,
    },
    slots: createSlots(1),
    signal: stopping.signal,
    clock: () => Date.now() + world.ahead,
    random: () => 0,
    noted: () => undefined,
    passedOver: () => undefined,
  })
  // The timers of a lane keep no process alive.
  const alive = setInterval(() => undefined, 60_000)
  t.teardown(() => {
    clearInterval(alive)
    stopping.abort()
    lane.end()
  })
  return { lane, world, sent, next: () => once(attempts, 'sent') }
}

/** Resolves when a lane has looked at what is wanted. */
async function looked(lane: ReturnType<typeof createLane>): Promise<void> {
  await nextTurn()
  lane.wake()
  await lane.ended()
  await nextTurn()
}

function wanted(title: string) {
  const shown = { livestreamId, artist: null, title, type: 'music', start: '', length: null }
  return { key: title, shown, isIdle: false, isStale: false }
}

t.jobs = 3

t.test('a clock that is set back holds up no attempt', async (t) => {
  const { lane, world, sent, next } = openLane(t)
  Object.assign(world, { title: 'One', result: 'failed' })
  lane.began()
  await next()
  world.ahead = -3_600_000
  Object.assign(world, { result: 'acknowledged' })
  await next()
  t.strictSame(sent, ['One', 'One'])
})

t.test('a new title waits a second, however long the pause of the one before is', async (t) => {
  const { lane, world, sent, next } = openLane(t)
  await Promise.all([next(), lane.test(wanted('Test').shown)])
  const begun = performance.now()
  world.title = 'One'
  lane.began()
  await next()
  t.strictSame(sent, ['Test', 'One'])
  t.ok(performance.now() - begun < 5_000, 'the pause of the test is 10 s')
})

t.test('a failed test is not tried again, so it fails no longer when nothing plays', async (t) => {
  const { lane, world } = openLane(t)
  world.result = 'refused'
  await lane.test(wanted('Test').shown)
  t.match(lane.state(), { state: 'retrying', failures: 1 })
  await looked(lane)
  t.match(lane.state(), { state: 'nothing', failures: 0, failed: 1, nextTry: null, lastReason: null })
})

t.test('a made-up title does not stay where nothing plays', async (t) => {
  const { lane, sent, next } = openLane(t)
  await lane.test(wanted('Test').shown)
  await looked(lane)
  t.strictSame(sent, ['Test'], 'it stays for 10 s')
  t.match(lane.state(), { state: 'test', title: 'Test' })
  await next()
  await lane.ended()
  t.strictSame(sent, ['Test', ''])
  t.match(lane.state(), { state: 'idle text', title: '' })
})

t.test('an element that has become too old is tried no longer', async (t) => {
  const { lane, world, next } = openLane(t)
  Object.assign(world, { title: 'One', result: 'failed' })
  lane.began()
  await next()
  world.isStale = true
  await looked(lane)
  t.match(lane.state(), { state: 'nothing', failures: 0, stale: 1 })
})

t.test('a lane keeps only the beginning of a title', async (t) => {
  const { lane, world, next } = openLane(t)
  world.title = 'x'.repeat(200_000)
  lane.began()
  await next()
  lane.wake()
  await lane.ended()
  t.ok(JSON.stringify([lane.state(), lane.log()]).length < 2_000)
})
