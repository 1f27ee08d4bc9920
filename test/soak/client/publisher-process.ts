import { connectPublisher } from '../../../client/node.ts'
import { control, station } from '../../events.ts'

/*
 * A publisher as a process of its own, for tests that kill it. Its argument is JSON: options of `connectPublisher`, and
 * `first`, the number of its first event. Prints lines: `taken N`, `restored N` and `settled N OUTCOME`.
 */

const { first, rounds, ...options } = JSON.parse(process.argv[2] ?? '')
const publisher = connectPublisher(options)
const settle = (number: unknown, result: Promise<{ outcome: string }>) =>
  result.then(
    ({ outcome }) => console.log(`settled ${number} ${outcome}`),
    (error: Error) => console.log(`settled ${number} ${error.message}`),
  )
const results = publisher.restored.map(({ event, result }) => {
  const { marker } = Object(event)
  console.log(`restored ${marker}`)
  return settle(marker, result)
})
for (let number = first; number < first + rounds; number++) {
  const result = publisher.publish(control(station(), { name: `state-${number % 10}`, marker: number }))
  console.log(`taken ${number}`)
  results.push(settle(number, result))
  if (number % 20 === 0) await result.catch(() => {})
}
await Promise.all(results)
await publisher.close()
