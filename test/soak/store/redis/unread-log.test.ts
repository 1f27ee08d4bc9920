import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { onRedis } from '../../../redis-server.ts'
import { numbered, openRedis } from '../../../store/open-redis.ts'
import { startNetwork } from '../../../store/slow-network.ts'

onRedis('a log of changes that this node may not read', async (t, redis) => {
  const client = redis.client()
  await once(client, 'ready')
  const states: { up: boolean; reason?: string }[] = []
  const changed = new EventTarget()
  const store = await openRedis(t, redis.url, {
    timeoutMs: 1_500,
    onReading(state) {
      states.push(state)
      changed.dispatchEvent(new Event('change'))
    },
  })
  const told: number[] = []
  store.follow((changes) => {
    for (const change of changes) if ('tell' in change) told.push(Number(change.value))
  }, t.fail)
  await store.commit([{ tell: 'n', value: 'before' }])
  await client.call('ACL', ['SETUSER', 'default', '-xread'])

  const reported = once(changed, 'change')
  const outcomes: unknown[] = []
  const givenUp: number[] = []
  const commits: Promise<unknown>[] = []
  for (let count = 0; count < 60 && outcomes.length === 0; count++) {
    const commit = store.commit([{ tell: 'n', value: `${count}` }])
    commits.push(
      commit.catch((error: unknown) => {
        outcomes.push(error)
        givenUp.push(count)
      }),
    )
    await delay(50)
  }
  const message =
    /^not committed, it may still be applied: the log of changes of Redis cannot be read \(NOPERM .+\)$/
  t.match(outcomes[0], { name: 'OutcomeUnknown', message }, 'commits end in time, also while others follow')
  await Promise.all(commits)
  for (const outcome of outcomes) t.match(outcome, { message })

  await reported
  const isReadAgain = once(changed, 'change')
  await client.call('ACL', ['SETUSER', 'default', '+xread'])
  await isReadAgain
  t.match(states, [{ up: false, reason: /^NOPERM/ }, { up: true }], 'it is reported once')
  t.equal(states.length, 2)
  await store.commit([{ tell: 'n', value: 'after' }])
  // Commits may be given up in any order.
  const inOrder = givenUp.toSorted((a, b) => a - b)
  t.strictSame(told, inOrder, 'what was given up is told, in the order of the log')
})

onRedis('a Redis that is away is not reported as a log that cannot be read', async (t, redis) => {
  const states: string[] = []
  const store = await openRedis(t, redis.url, {
    timeoutMs: 1_000,
    onReading: ({ up }) => states.push(`log ${up}`),
    onConnection: ({ up }) => states.push(`Redis ${up}`),
  })
  store.follow(() => undefined, t.fail)
  await store.commit([{ put: 'k/1', value: 'x' }])
  await redis.kill()
  // These commits take longer than 3 s, after which an unreadable log would be reported.
  for (let count = 0; count < 4; count++) await t.rejects(store.commit([{ put: 'k/1', value: 'x' }]))
  await redis.restart()
  while (!states.includes('Redis true')) {
    await store.commit([{ put: 'k/2', value: 'x' }]).catch(() => undefined)
  }
  t.strictSame(states, ['Redis false', 'Redis true'])
})

onRedis('a node that has much to read waits for its own commits', async (t, redis) => {
  const network = await startNetwork(t, redis.port, { delayMs: 200 })
  const [store, other] = [
    await openRedis(t, network.url, { timeoutMs: 2_000 }),
    await openRedis(t, redis.url),
  ]
  for (const key of numbered(400)) await other.commit([{ put: key, value: 'x' }])
  let told = 0
  await new Promise<void>((resolve) => {
    store.follow((changes) => {
      told += changes.length
      resolve()
    }, t.fail)
  })
  await store.commit([{ put: 'k/1', value: 'x' }])
  t.equal(told, 400, 'longer than Redis may take to answer')
})
