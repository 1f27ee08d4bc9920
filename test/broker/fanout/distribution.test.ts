import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createDeliveryQueue, type Delivery } from '../../../broker/fanout/distribution.ts'

t.test('deliveries to very many hold up who publishes, where too many of them wait', async (t) => {
  const deliver = createDeliveryQueue()
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
  const deliver = createDeliveryQueue()
  let sent = 0
  void deliver([
    {
      bytes: 1,
      send: () => {
        sent++
        return []
      },
    },
  ])
  t.equal(sent, 1)
})

t.test('the buffers of fast readers are saved also from many deliveries that wait', async (t) => {
  const deliver = createDeliveryQueue()
  const bytes = 100 * 1024
  let inTurn = 0
  let most = 0
  const send = () => {
    inTurn += bytes
    most = Math.max(most, inTurn)
    return []
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

function withBreaks(count: number): Delivery {
  return { bytes: 1, send: () => Array.from({ length: count }, () => undefined) }
}
