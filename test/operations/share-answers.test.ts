import { mock } from 'node:test'
import t from 'tap'
import { shareAnswers } from '../../operations/share-answers.ts'

t.test('those who ask the same within a second get one answer', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { ask, carriedOut } = start()
  const [first, second] = await Promise.all([ask('status'), ask('status')])
  t.same(first, second)
  mock.timers.tick(999)
  t.same(await ask('status'), first)
  t.same(carriedOut, ['status'])
  mock.timers.tick(1)
  t.not(await ask('status'), first, 'a second later it is asked anew')
  t.same(carriedOut, ['status', 'status'])
})

t.test('other arguments are another question', async (t) => {
  const { ask, carriedOut } = start()
  await ask('events.list', { limit: 50 })
  await ask('events.list', { limit: 51 })
  await ask('events.list', { limit: 50 })
  t.equal(carriedOut.length, 2)
})

t.test('after a change everybody is answered anew, also who asked while it was made', async (t) => {
  const { ask, carriedOut } = start()
  await ask('queues.list')
  const change = ask('queues.pause', { name: 'one' })
  await ask('queues.list')
  await change
  await ask('queues.list')
  t.same(carriedOut, ['queues.list', 'queues.pause', 'queues.list'])
})

t.test('changes are never shared, nor are long questions', async (t) => {
  const { ask, carriedOut } = start()
  for (const name of ['queues.pause', 'queues.pause', 'no.such', 'no.such']) await ask(name)
  await ask('events.list', { livestream: 'x'.repeat(500) })
  await ask('events.list', { livestream: 'x'.repeat(500) })
  t.equal(carriedOut.length, 6)
})

function start() {
  const carriedOut: string[] = []
  const shared = shareAnswers(async (name) => ({ result: carriedOut.push(name) }))
  const ask = (name: string, args: Record<string, unknown> = {}) => shared(name, args, 'ops@radio.example')
  return { ask, carriedOut }
}
