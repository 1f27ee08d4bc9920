import { setImmediate as nextTurn } from 'node:timers/promises'

/** Number of turns of the event loop that others have while something is done. */
export async function turnsBeside(work: () => Promise<unknown>): Promise<number> {
  let isDone = false
  const done = work().then(() => {
    isDone = true
  })
  let turns = 0
  for (; !isDone; turns++) await nextTurn()
  await done
  return turns
}
