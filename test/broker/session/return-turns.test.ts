import { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { generate, parser } from 'mqtt-packet'
import t from 'tap'
import { createReturnTurns } from '../../../broker/session/return-turns.ts'
import { openBroker, subscriber } from '../../conformance/peers.ts'
import type { PlainBroker } from '../../plain-broker.ts'
import { connectPacket } from '../../raw-client.ts'
import { leave, many, persistent } from './crashing-hub.ts'

t.test(
  'what sessions missed goes out in turns that leave room for others, to all of them alternately',
  async (t) => {
    const broker = await openBroker(t)
    const clientIds = Array.from({ length: 12 }, (_, index) => `c${index}`)
    for (const clientId of clientIds) {
      await leave(await subscriber(t, broker, clientId, { 'e/#': 1 }, persistent))
    }
    await broker.broker.distribute(many(60, 'e'))
    const counted = countPerTurn()
    for (const clientId of clientIds) comeBack(broker, clientId, counted.add)
    while (counted.total() < clientIds.length * 60) await nextTurn()
    counted.stop()
    // The test may count from the middle of a turn to the middle of the next.
    t.ok(counted.most() <= 2 * 48, `${counted.most()} messages in one turn`)
  },
)

t.test('of log-ins and choices one goes through in a turn, those of each address alternately', async (t) => {
  const turns = createReturnTurns()
  for (const step of ['logIn', 'choice'] as const) {
    const through: string[] = []
    const counted = countPerTurn()
    const asked = ['a1', 'a2', 'a3', 'b1'].map(async (name) => {
      await turns.enter(step, name.slice(0, 1))
      counted.add()
      through.push(name)
    })
    await Promise.all(asked)
    counted.stop()
    t.equal(counted.most(), 1, step)
    t.same(through, ['a1', 'a2', 'b1', 'a3'])
    // The next step begins in a turn of its own.
    await nextTurn()
  }
})

t.test('one choice is made in a turn, also where a slow store answers to many returns at once', async (t) => {
  const clientIds = Array.from({ length: 20 }, (_, index) => `c${index}`)
  let reading = 0
  let answer = () => {}
  const allRead = new Promise<void>((resolve) => {
    answer = resolve
  })
  let choices: ReturnType<typeof countPerTurn> | undefined
  const broker = await openBroker(t, {
    // A return asks once for its only filter, when it begins to choose.
    access: {
      maySubscribe() {
        choices?.add()
        return { allowed: true }
      },
    },
    wrapStore: (store) => ({
      ...store,
      async *range(...of) {
        if (choices && of[0].startsWith('outgoing/')) {
          if (++reading === clientIds.length) answer()
          await allRead
        }
        yield* store.range(...of)
      },
    }),
  })
  for (const clientId of clientIds)
    await leave(await subscriber(t, broker, clientId, { 'e/#': 1 }, persistent))
  choices = countPerTurn()
  for (const clientId of clientIds) comeBack(broker, clientId, () => undefined)
  while (choices.total() < clientIds.length) await nextTurn()
  choices.stop()
  // As above, the test may count from the middle of a turn.
  t.ok(choices.most() <= 2, `${choices.most()} choices in one turn`)
})

/** A client that resumes its session, and acknowledges each message in a later turn. */
function comeBack({ broker }: PlainBroker, clientId: string, received: () => void): void {
  const parse = parser()
  parse.on('packet', (packet) => {
    if (packet.cmd !== 'publish') return
    received()
    const { messageId = 0 } = packet
    setImmediate(() => socket.push(generate({ cmd: 'puback', messageId })))
  })
  const socket = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      parse.parse(chunk)
      done()
    },
  })
  broker.accept(socket, '127.0.0.1')
  socket.push(generate(connectPacket({ clientId, clean: false })))
}

/** Counts calls of `add` per turn of the event loop. */
function countPerTurn() {
  let [total, inTurn, most] = [0, 0, 0]
  let look = setImmediate(nextLook)
  function nextLook(): void {
    inTurn = 0
    look = setImmediate(nextLook)
  }
  return {
    add(): void {
      total++
      most = Math.max(most, ++inTurn)
    },
    total: () => total,
    most: () => most,
    stop: () => clearImmediate(look),
  }
}
