import t from 'tap'
import { createHashingQueue, type HashingAsker } from '../../../bridge-https/users/hashing-queue.ts'

/** Records which clients the queue serves, and which it sends away. */
function openQueue(places: number) {
  const queue = createHashingQueue(places)
  const sentAway: string[] = []
  let served = ''
  return {
    sentAway,
    add(name: string, familiarity: HashingAsker['familiarity'], from = name): void {
      const waiting = {
        start: () => {
          served = name
        },
        sendAway: () => sentAway.push(name),
      }
      if (!queue.add({ from, familiarity }, waiting)) sentAway.push(name)
    },
    serve(count: number): string[] {
      return Array.from({ length: count }, () => {
        served = '-'
        queue.next()?.start()
        return served
      })
    },
  }
}

t.test('addresses are served alternately, however much one of them asks for', async (t) => {
  const queue = openQueue(10)
  for (const name of ['a1', 'a2', 'a3']) queue.add(name, 'strange', 'a')
  queue.add('b1', 'strange', 'b')
  queue.add('c1', 'strange', 'c')
  t.same(queue.serve(6), ['a1', 'b1', 'c1', 'a2', 'a3', '-'])
})

t.test('the better known come first, and nobody waits for ever', async (t) => {
  const queue = openQueue(20)
  for (const name of ['s1', 's2', 's3']) queue.add(name, 'strange')
  for (const name of ['n1', 'n2', 'n3']) queue.add(name, 'network')
  for (let index = 1; index <= 9; index++) queue.add(`k${index}`, 'address')
  t.same(queue.serve(8), ['k1', 'k2', 'k3', 's1', 'k4', 'k5', 'k6', 'n1'])
  t.same(queue.serve(8), ['k7', 'k8', 'k9', 's2', 'n2', 'n3', 's3', '-'])
})

t.test('strangers take no place of those who are known', async (t) => {
  const queue = openQueue(2)
  for (const name of ['s1', 's2', 's3']) queue.add(name, 'strange')
  queue.add('k1', 'address')
  t.same(queue.sentAway, ['s3'])
  t.same(queue.serve(3), ['k1', 's1', 's2'])
})

t.test('an address that waits with many gives way to one with none', async (t) => {
  const queue = openQueue(3)
  for (const name of ['a1', 'a2', 'a3', 'a4']) queue.add(name, 'strange', 'a')
  t.same(queue.sentAway, ['a4'])
  queue.add('b1', 'strange', 'b')
  t.same(queue.sentAway, ['a4', 'a3'])
  queue.add('b2', 'strange', 'b')
  t.same(queue.sentAway, ['a4', 'a3', 'b2'], 'not for as many as itself')
  t.same(queue.serve(3), ['a1', 'b1', 'a2'])
})
