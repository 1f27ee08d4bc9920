import type { SharedStore } from '../../../store/store.ts'
import { onRedis, startRedis } from '../../redis-server.ts'
import { entries, openRedis } from '../open-redis.ts'
import { startNetwork } from '../slow-network.ts'

const key = 'node/a'
const gone = { del: key }
/** The node becomes a member. With another `value`, it is another member. */
const enter = (store: SharedStore, value: string) => store.enter([{ put: key, value }], { key, value })
const put = (name: string) => ({ put: `k/${name}`, value: 'x' })
const fenced = { name: 'Fenced' }

onRedis('a node whose membership is gone', async (t, redis) => {
  let spaces = 0
  const openTwo = async () => {
    const project = `fence ${spaces++}`
    const network = await startNetwork(t, redis.port)
    const store = await openRedis(t, network.url, { project })
    const other = await openRedis(t, redis.url, { project })
    const stored = async () => [...(await entries(other, 'k/')).keys()]
    return { network, store, other, stored }
  }

  t.test('commits freely before it has entered, and while it is a member', async (t) => {
    const { store, other, stored } = await openTwo()
    await store.commit([put('1')])
    const [waiting, entering, next] = [
      store.commit([put('2')]),
      enter(store, 'first'),
      store.commit([put('3')]),
    ]
    await Promise.all([waiting, entering, next])
    await other.commit([{ put: 'node/b', value: 'x' }])
    await store.commit([put('4')])
    t.strictSame(await stored(), ['k/1', 'k/2', 'k/3', 'k/4'])
    await other.commit([gone])
    await t.rejects(store.commit([put('5')]), fenced, 'but no longer')
  })

  t.test('is refused, at once and in everything, until it has entered again', async (t) => {
    const { network, store, other, stored } = await openTwo()
    await enter(store, 'first')
    await other.commit([gone])
    await t.rejects(store.commit([put('1')]), fenced)
    network.hold()
    await t.rejects(store.commit([put('2')]), fenced, 'without asking')
    await t.rejects(store.commit([]), fenced)
    network.release()
    await enter(store, 'second')
    await store.commit([put('3')])
    t.strictSame(await stored(), ['k/3'])
  })

  t.test('is refused as well when somebody else is there under its key', async (t) => {
    const { store, other, stored } = await openTwo()
    await enter(store, 'first')
    await other.commit([{ put: key, value: 'other', order: { time: 1, horizon: 2 } }])
    await t.rejects(store.commit([put('1')]), fenced)
    t.strictSame(await stored(), [])
  })

  t.test('may still read', async (t) => {
    const { store, other } = await openTwo()
    await enter(store, 'first')
    await other.commit([gone, put('1')])
    await t.rejects(store.commit([put('2')]), fenced)
    t.equal(`${await store.get('k/1')}`, 'x')
  })

  t.test('is refused also what waited when the fence broke, whoever notices first', async (t) => {
    for (const isNoticedBefore of [false, true]) {
      const { network, store, other, stored } = await openTwo()
      await enter(store, 'first')
      network.hold()
      const sent = [t.rejects(store.commit([put('sent')]), fenced)]
      await new Promise(setImmediate)
      sent.push(t.rejects(store.commit([put('waiting')]), fenced))
      await other.commit([gone])
      const entering = isNoticedBefore ? enter(store, 'second') : undefined
      if (isNoticedBefore) sent.push(t.rejects(store.commit([put('later')]), fenced))
      network.release()
      await Promise.all(sent)
      await (entering ?? enter(store, 'second'))
      await store.commit([put('entered')])
      t.strictSame(await stored(), ['k/entered'])
    }
  })

  t.test('is refused from the moment it begins to enter again', async (t) => {
    const { store, other, stored } = await openTwo()
    await enter(store, 'first')
    await other.commit([gone])
    const entering = enter(store, 'second')
    await t.rejects(store.commit([put('early')]), fenced)
    await entering
    await store.commit([put('entered')])
    t.strictSame(await stored(), ['k/entered'])
  })

  t.test('is a member again when it has been told all that was done without it', async (t) => {
    const { store, other, stored } = await openTwo()
    const told: string[] = []
    store.follow((changes) => {
      for (const change of changes) told.push('put' in change ? change.put : 'gone')
    }, failed)
    await enter(store, 'first')
    await other.commit([gone])
    await other.commit([put('1')])
    await t.rejects(store.commit([put('2')]), fenced)
    const entering = enter(store, 'second')
    await t.rejects(store.commit([put('3')]), fenced, 'not before')
    await entering
    t.strictSame(told, ['gone', 'k/1'])
    await store.commit([put('4')])
    t.strictSame(await stored(), ['k/1', 'k/4'])
  })

  t.test('stays out when a condition of its entry fails', async (t) => {
    const { store, other, stored } = await openTwo()
    await enter(store, 'first')
    await other.commit([gone, { put: 'slot/0', value: 'b' }])
    const entry = (slot: string) =>
      store.enter(
        [
          { put: key, value: 'second' },
          { put: slot, value: 'a', when: 'absent' },
        ],
        { key, value: 'second' },
      )
    await t.rejects(entry('slot/0'), { name: 'ConditionFailed', key: 'slot/0' })
    await t.rejects(store.commit([put('1')]), fenced)
    await entry('slot/1')
    await store.commit([put('2')])
    t.strictSame(await stored(), ['k/2'])
  })

  t.test('catching up ends when all that was committed before has been told', async (t) => {
    const { store, other } = await openTwo()
    const told: string[] = []
    store.follow((changes) => {
      for (const change of changes) if ('put' in change) told.push(change.put)
    }, failed)
    for (const round of [1, 2, 3]) {
      for (let count = 0; count < 50; count++) await other.commit([put(`${round} ${count}`)])
      await store.catchUp()
      t.equal(told.length, round * 50)
    }
    await store.catchUp()
  })

  t.test('catching up fails without an answer in time', async (t) => {
    const own = await startRedis(t)
    const store = await openRedis(t, own.url, { timeoutMs: 1_000 })
    await t.rejects(store.catchUp(), { message: /not followed/ })
    store.follow(failed, failed)
    own.pause()
    await t.rejects(store.catchUp(), { message: /^Redis did not answer within 1000 ms/ })
    own.resume()
  })
})

function failed(): never {
  throw new Error('called')
}
