import t from 'tap'
import { createOutgoing, outgoingPrefix } from '../../../broker/session/outgoing-qos2.ts'
import { createSession, type Session } from '../../../broker/session/session.ts'
import { openBroker, peer, subscriber } from '../../conformance/peers.ts'
import { openStore } from '../../open-store.ts'
import { until } from '../../until.ts'
import { touches } from '../failing-store.ts'
import { leave, persistent } from './crashing-hub.ts'

/* QoS 2 messages to a persistent session, from PUBLISH to PUBCOMP. */

const message = { topic: 'a', payload: Buffer.from('a'), queue: { keep: 'every' } } as const
const principal = { role: 'subscriber', username: 'u', filters: ['#'] } as const
const of = { clientId: 'c', clean: false, permission: '', principal, connection: undefined }
const session = (createdAt: number): Session => createSession({ ...of, createdAt })
const owed = (position: number) => ({ position, qos: 2, retain: false, dup: false }) as const
const all = () => true

t.test('a message waits for PUBREC, then for PUBCOMP, and is then gone with its release', async (t) => {
  const store = await openStore(t)
  const outgoing = createOutgoing(store)
  const one = session(1)
  for (const position of [1, 2, 3]) await outgoing.store(one, message, owed(position))
  await outgoing.release(one, 2)
  t.match(await outgoing.read('c', 1), [
    { position: 1, dup: true, stored: true },
    { position: 2, released: true },
    { position: 3, released: undefined },
  ])
  outgoing.remove(one, 1)
  outgoing.remove(one, 2)
  await outgoing.commitRemovals(all, (changes) => store.commit(changes))
  t.match(await outgoing.read('c', 1), [{ position: 3 }])
  const left: string[] = []
  for await (const [key] of store.range(outgoingPrefix('c'))) left.push(key)
  t.equal(left.length, 1, 'no release is left without its message')
})

t.test('a later session with the same client id does not get it', async (t) => {
  const outgoing = createOutgoing(await openStore(t))
  await outgoing.store(session(1), message, owed(1))
  t.same(await outgoing.read('c', 2), [])
})

t.test('nor a release whose message is gone', async (t) => {
  const outgoing = createOutgoing(await openStore(t))
  await outgoing.release(session(1), 1)
  t.same(await outgoing.read('c', 1), [])
})

t.test('removals that could not be stored are stored with later ones', async (t) => {
  const store = await openStore(t)
  const outgoing = createOutgoing(store)
  const one = session(1)
  for (const position of [1, 2]) await outgoing.store(one, message, owed(position))
  outgoing.remove(one, 1)
  const failing = outgoing.commitRemovals(all, async () => {
    outgoing.remove(one, 2)
    throw new Error('disk full')
  })
  await t.rejects(failing, { message: 'disk full' })
  await outgoing.commitRemovals(all, (changes) => store.commit(changes))
  t.same(await outgoing.read('c', 1), [])
})

t.test('one in flight is stored once: the place of its session does not name it', async (t) => {
  let stored = 0
  const broker = await openBroker(t, {
    wrapStore: (store) => ({
      ...store,
      commit(changes, underway) {
        if (touches('outgoing/')(changes)) stored++
        return store.commit(changes, underway)
      },
    }),
  })
  const client = await subscriber(t, broker, 'c', { a: 2 }, persistent)
  await broker.broker.distribute([{ ...message, qos: 2 }])
  await client.next('publish')
  await leave(client)
  const record = async () => JSON.parse(String(await broker.store.get('session/c')))
  await until(async () => (await record()).node === undefined)
  t.same((await record()).owed, [])
  const again = await peer(t, broker, 'c', persistent)
  t.match(await again.next('publish'), { topic: 'a', dup: true })
  t.equal(stored, 1, 'nor is it stored again')
})
