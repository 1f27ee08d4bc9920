import { setImmediate as nextTurn } from 'node:timers/promises'
import { onRedis } from '../../redis-server.ts'
import { numbered, openRedis, text } from '../open-redis.ts'

onRedis('a node that stands still for longer than Redis may take', async (t, redis) => {
  t.test('reads the answers that came meanwhile before it gives up', async (t) => {
    const store = await openRedis(t, redis.url, { project: 'sent', timeoutMs })
    await store.commit([{ put: 'k/1', value: 'first' }])
    const told = new Promise((resolve, reject) => store.follow(resolve, reject))
    await store.catchUp()
    redis.pause()
    const asked = store.get('k/1')
    const sent = store.commit([{ put: 'k/1', value: 'second' }])
    await nextTurn()
    const large = 'x'.repeat(300_000)
    const groupsBehind = numbered(3).map((put) => store.commit([{ put, value: large }]))
    redis.resume()
    standStill()
    t.equal((await asked)?.toString(), 'first')
    await sent
    await Promise.all(groupsBehind)
    t.equal(await text(store, 'k/1'), 'second')
    const other = await openRedis(t, redis.url, { project: 'sent' })
    await other.commit([{ put: 'k/2', value: 'of another node' }])
    t.match(await told, [{ put: 'k/2' }], 'it follows the others as before')
  })

  t.test('gives Redis time to answer also what it could not send before', async (t) => {
    const store = await openRedis(t, redis.url, { project: 'unsent', timeoutMs })
    await store.commit([{ put: 'k/1', value: 'first' }])
    const unsent = store.commit([{ put: 'k/1', value: 'second' }])
    const unasked = store.get('k/2')
    standStill()
    await unsent
    t.equal(await unasked, undefined)
    t.equal(await text(store, 'k/1'), 'second')
  })

  t.test('still gives up a Redis that does not answer', async (t) => {
    const store = await openRedis(t, redis.url, { project: 'paused', timeoutMs })
    await store.commit([{ put: 'k/1', value: 'first' }])
    redis.pause()
    const sent = store.commit([{ put: 'k/1', value: 'second' }])
    standStill()
    const message = /^not committed, it may still be applied: Redis did not answer/
    await t.rejects(sent, { name: 'OutcomeUnknown', message }, 'so `hubctl` says that nobody knows')
    redis.resume()
  })
})

/** Long enough: after the standstill, Redis has three quarters of this time for a commit on a slow disk. */
const timeoutMs = 700

/** Blocks the event loop for longer than `timeoutMs`, like a stopped or busy process. */
function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1.2 * timeoutMs)
}
