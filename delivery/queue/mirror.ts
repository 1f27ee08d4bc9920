import type { Store } from '../../store/store.ts'
import { keyOf } from '../../store/store.ts'
import { createBodies } from './bodies.ts'
import {
  addLetterTo,
  byGivingUp,
  currentOf,
  emptyQueue,
  type Queue,
  replaceIn,
  sequencesOf,
  takeFrom,
  takeLettersFrom,
} from './queue.ts'
import type { DeadLetter, WorkItem } from './work-item.ts'
import { numberOf, placeOf, readWork } from './work-records.ts'

/**
 * The queues in memory, as the store has them: loaded, changed by this node, and following what other nodes do
 * with them. `heard` is told every sequence that is in use, `appended` of items that others append.
 */
export async function createMirror(
  store: Store,
  heard: (sequence: number) => void,
  appended: (queue: string) => void,
) {
  const queues = new Map<string, Queue>()
  const bodies = createBodies(store)
  const stored = await readWork(store)
  for (const [name, item] of stored.items) addItem(name, item)
  const letters = stored.deadLetters.sort(([, a], [, b]) => byGivingUp(a, b))
  for (const [name, letter] of letters) queueOf(name).dead.push(letter)
  const all = [...stored.items, ...letters].map(([, item]) => item)
  for (const sequence of stored.bodies) heard(sequence)
  for (const { sequence } of all) heard(sequence)
  bodies.hold(all)
  // Other nodes may be storing the items of these bodies at this moment: a later look tells.
  if (store.watch) bodies.suspect(stored.bodies)
  else bodies.findOrphans(stored.bodies)
  follow()

  return {
    queues,
    bodies,
    queueOf,

    /** Takes items out; without `release` something else refers to their bodies from now on. */
    take(name: string, items: readonly WorkItem[], release: boolean): void {
      const queue = queues.get(name)
      if (!queue) return
      const taken = takeFrom(queue, sequencesOf(items))
      if (release) bodies.release(taken)
    },

    takeLetters(name: string, letters: readonly DeadLetter[], release: boolean): void {
      const queue = queues.get(name)
      if (!queue) return
      const taken = takeLettersFrom(queue, letters)
      if (release) bodies.release(taken)
    },
  }

  function queueOf(name: string): Queue {
    const known = queues.get(name)
    if (known) return known
    const queue = emptyQueue()
    queues.set(name, queue)
    return queue
  }

  function addItem(name: string, item: WorkItem): void {
    const queue = queueOf(name)
    if (item.asideUntil === undefined) queue.line.push(item)
    else queue.aside.push(item)
  }

  function forgetEmpty(name: string, { line, aside, dead, dropped }: Queue): void {
    if (line.length + aside.length + dead.length + dropped === 0) queues.delete(name)
  }

  /** In the order of the commits; the node that lets go of a body last also removes it from the store. */
  function follow(): void {
    store.watch?.('work/', (change) => {
      const { queue: name, sequence } = placeOf(keyOf(change))
      const queue = queueOf(name)
      if ('put' in change) {
        const item: WorkItem = JSON.parse(change.value.toString())
        if (currentOf(queue, item)) {
          replaceIn(queue, item)
          return
        }
        heard(sequence)
        bodies.hold([item])
        addItem(name, item)
        appended(name)
        return
      }
      bodies.releaseElsewhere(takeFrom(queue, new Set([sequence])))
      forgetEmpty(name, queue)
    })
    store.watch?.('work-dead/', (change) => {
      const { queue: name, sequence } = placeOf(keyOf(change))
      const queue = queueOf(name)
      const known = queue.dead.filter((letter) => letter.sequence === sequence)
      bodies.releaseElsewhere(takeLettersFrom(queue, known))
      if (!('put' in change)) {
        forgetEmpty(name, queue)
        return
      }
      const letter: DeadLetter = JSON.parse(change.value.toString())
      bodies.hold([letter])
      addLetterTo(queue, letter)
    })
    store.watch?.('work-body/', (change) => {
      const sequence = numberOf(keyOf(change))
      if ('put' in change) bodies.keep(sequence, change.value)
      else bodies.removed(sequence)
    })
  }
}
