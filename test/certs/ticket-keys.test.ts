import pino from 'pino'
import t, { type Test } from 'tap'
import { openTicketKeys, ticketLifeSeconds } from '../../certs/ticket-keys.ts'
import { storeKeys } from '../../store/keys.ts'
import { createSharedSpace, settled, type TestStore } from '../shared-store.ts'

const path = `${storeKeys.ticketKey.prefix}current`
const lifeMs = ticketLifeSeconds * 1000
const log = pino({ level: 'silent' })

function openNodes(t: Test) {
  const space = createSharedSpace()
  let now = Date.parse('2026-01-31T12:00:00Z')
  const open = async (isLeader: boolean) => {
    const store = space.openFollowed(t)
    const keys = await openTicketKeys({ store, isLeader: () => isLeader, clock: () => now, log })
    t.teardown(keys.close)
    const changes: Buffer[] = []
    keys.onChange((key) => changes.push(key))
    store.start()
    return { store, keys, changes }
  }
  return {
    open,
    pass(ms: number): void {
      now += ms
    },
  }
}

t.test('all nodes have one key, also those that start together, or later', async (t) => {
  const { open } = openNodes(t)
  const [a, b] = await Promise.all([open(true), open(false)])
  const later = await open(false)
  t.equal(a.keys.current().length, 48)
  t.same(b.keys.current(), a.keys.current())
  t.same(later.keys.current(), a.keys.current())
})

t.test('the leader replaces it when its time is over, and all nodes take the new one', async (t) => {
  const { open, pass } = openNodes(t)
  const [leader, other] = [await open(true), await open(false)]
  const first = leader.keys.current()
  pass(lifeMs - 1)
  await leader.keys.look()
  t.same(leader.keys.current(), first, 'its time is not over')
  pass(1)
  await other.keys.look()
  t.same(other.keys.current(), first, 'only the leader replaces it')
  await leader.keys.look()
  await settled(other.store)
  t.notSame(leader.keys.current(), first)
  t.same(other.keys.current(), leader.keys.current())
  t.same([leader.changes, other.changes], [[leader.keys.current()], [leader.keys.current()]])
  pass(-2 * lifeMs)
  await leader.keys.look()
  t.equal(leader.changes.length, 2, 'a key of the future is not kept until then')
})

t.test('of two leaders at once one is heeded', async (t) => {
  const { open, pass } = openNodes(t)
  const [a, b] = [await open(true), await open(true)]
  pass(lifeMs)
  await Promise.all([a.keys.look(), b.keys.look()])
  await settled(a.store, b.store)
  t.same(a.keys.current(), b.keys.current())
  t.same(await storedKey(a.store), a.keys.current())
})

t.test('without the store the old key stays, and the next look replaces it', async (t) => {
  const { open, pass } = openNodes(t)
  const { store, keys } = await open(true)
  const first = keys.current()
  pass(lifeMs)
  store.cut()
  await keys.look()
  t.same(keys.current(), first)
  store.restore()
  await keys.look()
  t.notSame(keys.current(), first)
  t.same(await storedKey(store), keys.current())
})

async function storedKey(store: TestStore): Promise<Buffer> {
  const [, key = ''] = String(await store.get(path)).split(' ')
  return Buffer.from(key, 'base64')
}
