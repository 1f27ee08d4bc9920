import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { onRedis } from '../../redis-server.ts'
import { root } from '../../root.ts'
import { entries, openRedis } from '../open-redis.ts'

/* A user of Redis that lacks a right: whichever it is, nothing is stored half-way. */

const lua = readFileSync(join(root, 'store/redis/commit.lua'), 'utf8')
const called = [...lua.matchAll(/redis\.call\('(\w+)'/g)].map(([, command = '']) => command)
/** Only a commit that is sent again calls EXPIRE, and then nothing else. */
const commands = [...new Set(called)].filter((command) => command !== 'EXPIRE')

onRedis('without the right to a command of the script, a commit changes nothing', async (t, redis) => {
  const client = redis.client()
  const store = await openRedis(t, redis.url)
  const other = await openRedis(t, redis.url)
  const told: string[] = []
  other.follow((changes) => {
    for (const change of changes) if ('put' in change) told.push(change.put)
  }, t.fail)
  const expected: string[] = []
  const put = (key: string) => store.commit([{ put: key, value: '', numbered: { nth: 0, at: 'value' } }])
  const stored = async () => ({
    entries: [...(await entries(store, 'k/'))],
    last: await store.lastNumber(),
    log: await client.xlen('{hub:test}:2:log'),
  })
  for (const command of commands) {
    await store.commit([{ put: 'k/old', value: '' }])
    const before = await stored()
    await client.acl('SETUSER', 'default', `-${command}`)
    const commit = store.commit([{ put: `k/${command}`, value: '' }, { del: 'k/old' }])
    const message = /^Redis refused: .*(NOPERM|can't run this command)/
    await t.rejects(commit, { message }, command)
    await client.acl('SETUSER', 'default', `+${command}`)
    t.same(await stored(), before, `${command}: nothing is changed`)
    await put(`k/${command}`)
    expected.push('k/old', `k/${command}`)
    t.ok((await entries(store, 'k/')).has(`k/${command}`), `${command}: what is stored later is found`)
  }
  await other.catchUp()
  t.same(told, expected, 'other nodes hear of each commit once')
})
