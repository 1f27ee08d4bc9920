import { onRedis } from '../../redis-server.ts'
import { entries, openRedis } from '../open-redis.ts'

/* Redis deletes single keys when its memory is full, where its `maxmemory-policy` is not `noeviction`. */

onRedis('with one of its keys deleted, a store takes and shows nothing, and says why', async (t, redis) => {
  const client = redis.client()
  const refused = { message: /^Redis has deleted a part of the store: stop all nodes, and restore a backup/ }
  for (const name of ['values', 'keys', 'log', 'log-head']) {
    const project = `without ${name}`
    const store = await openRedis(t, redis.url, { project })
    const put = (key: string) => store.commit([{ put: key, value: '', numbered: { nth: 0, at: 'value' } }])
    await put('k/stored')
    const kept = `{${project}:test}:2:${name}`
    await client.rename(kept, 'aside')
    await t.rejects(put('k/refused'), refused, `${name}: a commit`)
    const started = await openRedis(t, redis.url, { project })
    await t.rejects(entries(started, 'k/'), refused, `${name}: a range at the start`)
    await t.rejects(started.lastNumber(), refused, `${name}: the last number`)
    await t.rejects(started.commit([{ put: 'k/first', value: '' }]), refused, `${name}: a first commit`)
    await client.rename('aside', kept)
    await started.commit([{ put: 'k/next', value: '' }])
    t.same([...(await entries(started, 'k/')).keys()], ['k/next', 'k/stored'], `${name}: restored`)
  }
})
