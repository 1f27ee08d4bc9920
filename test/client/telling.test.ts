import { mock } from 'node:test'
import t from 'tap'
import { ClientError } from '../../client/errors.ts'
import { createTelling } from '../../client/telling.ts'

t.test('the same problem is told once a minute, and anew after a connection', async (t) => {
  let now = 1_000
  const clock = mock.method(performance, 'now', () => now)
  t.teardown(() => clock.mock.restore())
  const told: string[] = []
  const telling = createTelling(({ message }) => told.push(message))
  t.equal(telling.connected(), false)
  const lost = (message: string) => telling.tell(new ClientError('connection.lost', message))
  lost('away')
  now += 59_999
  lost('away')
  now += 1
  lost('away')
  lost('another')
  t.same(told, ['away', 'away', 'another'])
  t.equal(telling.connected(), true)
  t.equal(telling.connected(), false)
  lost('another')
  t.equal(told.length, 4)
})
