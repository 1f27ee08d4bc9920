import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { preparePublish } from '../../../broker/connection/frames.ts'
import { createDeliveryQueue, type Delivery } from '../../../broker/fanout/delivery-queue.ts'
import { sendToEach } from '../../../broker/fanout/writing.ts'
import type { Session } from '../../../broker/session/session.ts'
import { sumPerTurn } from '../../../listener/pacing.ts'

t.test('deliveries to very many hold up who publishes, where too many of them wait', async (t) => {
  const { deliver } = createDeliveryQueue()
  const ended: number[] = []
  let waiting = 0
  let most = 0
  const deliveries = Array.from({ length: 100 }, async (_, index) => {
    for (let turn = 0; turn < index; turn++) await nextTurn()
    most = Math.max(most, ++waiting)
    await deliver([withBreaks(30)])
    waiting--
    ended.push(index)
  })
  await Promise.all(deliveries)
  // In each turn of the event loop one delivery comes. If every delivery took a turn for each of its 30 breaks, almost
  // all would wait.
  t.ok(most < 20, `${most} waited`)
  t.same(
    ended,
    ended.toSorted((a, b) => a - b),
    'in the order in which they came',
  )
})

t.test('a delivery without a break is over in the turn in which it came', async (t) => {
  const { deliver } = createDeliveryQueue()
  let sent = 0
  void deliver([
    {
      bytes: 1,
      send: () => {
        sent++
        return undefined
      },
    },
  ])
  t.equal(sent, 1)
})

t.test('the buffers of fast readers are saved also from many deliveries that wait', async (t) => {
  const { deliver } = createDeliveryQueue()
  const bytes = 100 * 1024
  let inTurn = 0
  let most = 0
  const send = () => {
    inTurn += bytes
    most = Math.max(most, inTurn)
    return undefined
  }
  const first = deliver([withBreaks(1)])
  const rest = Array.from({ length: 20 }, () => deliver([{ bytes, send }]))
  let timer = setImmediate(function nextOne() {
    inTurn = 0
    timer = setImmediate(nextOne)
  })
  await Promise.all([first, ...rest])
  clearImmediate(timer)
  t.ok(most > 0 && most <= 256 * 1024, `${most} bytes in one turn`)
})

for (const qos of [0, 1] as const) {
  t.test(`pages get at most 16 messages in a turn, over all messages: QoS ${qos}`, async (t) => {
    const { deliver } = createDeliveryQueue(1_000)
    const fits = sumPerTurn(16)
    const publish = preparePublish({ topic: 'a', payload: Buffer.from('x') })
    const session = { outgoing: undefined } as Session
    const recipients = (count: number) => Array.from({ length: count }, () => [session, qos] as const)
    const send = (count: number) => () => sendToEach(recipients(count), publish, 1, { fits })
    const turnsOf = async (deliveries: readonly Delivery[]) => {
      let turns = 0
      let timer = setImmediate(function next() {
        turns++
        timer = setImmediate(next)
      })
      await deliver(deliveries)
      clearImmediate(timer)
      return turns
    }
    const toMany = await turnsOf([{ bytes: 1, send: send(160) }])
    t.ok(toMany >= 9 && toMany <= 11, `${toMany} turns for one message to 160 pages`)
    const toOne = await turnsOf(Array.from({ length: 160 }, () => ({ bytes: 1, send: send(1) })))
    t.ok(toOne >= 9 && toOne <= 11, `${toOne} turns for 160 messages to one page`)
  })
}

function withBreaks(count: number): Delivery {
  // A break comes before each step, and the last step ends the iterator.
  return { bytes: 1, send: () => Array.from({ length: count - 1 }, () => undefined).values() }
}
