import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { preparePublish } from '../../broker/connection/frames.ts'
import type { Qos } from '../../broker/connection/protocol.ts'
import { sendToEach } from '../../broker/fanout/writing.ts'
import type { Session } from '../../broker/session/session.ts'
import type { Message } from '../../event/message.ts'
import { openBroker, type Peer, peer, publishes, subscribe, subscriber } from '../conformance/peers.ts'

/* The broker does other work between the parts of a large delivery at QoS 0. */

const messageOf = (text: string, time = 1, topic = 'a'): Message => ({
  topic,
  payload: Buffer.from(text),
  qos: 1,
  queue: { keep: 'every' },
  retained: { slot: '', time },
})

t.test('breaks are made at QoS 0 only, before every 16 subscribers behind the first 128', async (t) => {
  const publish = preparePublish({ topic: 'a', payload: Buffer.from('x') })
  const breaks = (count: number, granted: Qos) => {
    const session = { outgoing: undefined } as Session
    const recipients = Array.from({ length: count }, () => [session, granted] as const)
    const rest = sendToEach(recipients, publish, 1)
    let made = rest ? 1 : 0
    while (rest && !rest.next().done) made++
    return made
  }
  t.equal(breaks(128, 0), 0)
  t.equal(breaks(129, 0), 1)
  t.equal(breaks(1_000, 0), 55)
  t.equal(breaks(1_000, 1), 0)
})

t.test('what goes out to very many', async (t) => {
  const broker = await openBroker(t)
  const names = Array.from({ length: 300 }, (_, index) => `many ${index}`)
  const many = await Promise.all(names.map((name) => subscriber(t, broker, name, { '#': 0 })))
  const distribute = (...message: Parameters<typeof messageOf>) =>
    broker.broker.distribute([messageOf(...message)])
  const seenBy = (client: Peer) => publishes(client).map(({ payload }) => String(payload))
  /** Waits for `value` and a PINGRESP behind it. Returns all received values. */
  async function seenUntil(client: Peer, value: string): Promise<string[]> {
    while (!seenBy(client).includes(value)) await client.next('publish', publishes(client).length)
    await client.settled()
    return seenBy(client)
  }

  t.test('takes turns with everything else, and nothing overtakes it', async (t) => {
    let turns = 0
    const first = distribute('1').then(() => turns)
    const rest = Promise.all([distribute('2'), distribute('3')])
    const count = () => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    t.ok((await first) >= 5)
    await rest
    clearImmediate(timer)
    for (const client of many) t.same(await seenUntil(client, '3'), ['1', '2', '3'])
  })

  for (const [name, qos, clean] of [
    ['late', 0, true],
    ['late, kept', 1, false],
  ] as const) {
    t.test(
      `is retained for who subscribes meanwhile, and nothing older comes behind it: ${name}`,
      async (t) => {
        const late = await peer(t, broker, name, { clean })
        const distributed: Promise<void>[] = []
        for (const value of ['4', '5', '6', '7', '8', '9']) {
          distributed.push(distribute(value, 1, name))
          if (value === '4') subscribe(late, 1, { [name]: qos })
          await nextTurn()
        }
        await Promise.all(distributed)
        const seen = await seenUntil(late, '9')
        t.same(seen, [...seen].sort())
      },
    )
  }

  t.test('does not hide what is retained behind older values that follow', async (t) => {
    const late = await peer(t, broker, 'patient')
    const distributed = [distribute('newest', 200)]
    subscribe(late, 1, { a: 0 })
    for (const value of ['older 1', 'older 2', 'older 3', 'older 4']) {
      await nextTurn()
      distributed.push(distribute(value, 150))
    }
    await Promise.all(distributed)
    const seen = await seenUntil(late, 'newest')
    t.equal(seen.filter((value) => value === 'newest').length, 1)
  })

  t.test('leaves out who has gone', async (t) => {
    const before: number[] = []
    for (const client of many) before.push((await seenUntil(client, 'older 4')).length)
    const distributed = distribute('last', 400)
    for (const client of many.slice(200)) client.socket.destroy()
    await distributed
    for (const [index, client] of many.slice(0, 200).entries()) {
      t.equal((await seenUntil(client, 'last')).length, (before[index] ?? 0) + 1)
    }
    t.equal(broker.broker.connectionCount(), 200)
  })
})
