import { once } from 'node:events'
import { mock } from 'node:test'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { pack } from '../../../validator/feed/packed.ts'
import { inWorker } from '../../../validator/feed/worker.ts'
import { feedText } from '../feeds.ts'

/** Threads that live, and how many lived at once at most. */
const threads = { now: 0, most: 0 }
process.on('worker', (worker: Worker) => {
  threads.now++
  threads.most = Math.max(threads.most, threads.now)
  worker.once('exit', () => threads.now--)
})

t.test('after a task that took too long the next one waits until its thread is gone', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const started = once(process, 'worker')
  const slow = inWorker('examine', examination(20_000))
  const next = slow.catch(() => inWorker('examine', examination(3)))
  const [worker] = await started
  await once(worker, 'online')
  mock.timers.tick(60_000)
  const error = await slow.catch((error: unknown) => error)
  t.match(error, { refused: { reason: 'unfinished', problem: /more than 60 s/ } })
  t.match(await next, { good: { packed: { size: 3 } } })
  t.equal(threads.most, 1)
})

t.test('the time of a task begins when the tasks before it are done', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const first = inWorker('examine', examination(20_000))
  const second = inWorker('examine', examination(3))
  mock.timers.tick(40_000)
  await first
  mock.timers.tick(40_000)
  t.match(await second, { good: { packed: { size: 3 } } })
})

/** A feed to examine, without any before it. */
function examination(count: number) {
  const read = { bytes: Buffer.from(feedText(count)), digest: '', etag: null }
  const none = { inUse: undefined, lastGood: undefined, former: pack([]) }
  return {
    read,
    source: 'a',
    ...none,
    guards: { canaries: [], connected: [], held: 0 },
    force: false,
    now: 0,
  }
}
