import { ConditionFailed, type Store } from '../../store/store.ts'
import { inBatches } from './batches.ts'
import { addLetterTo, bySequence, itemsIn, sequencesOf } from './queue.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import type { Transitions } from './transitions.ts'
import type { DeadLetter, NewItem, ReadPayload, WorkItem } from './work-item.ts'
import {
  deadLetterChange,
  deadPrefix,
  itemChange,
  readPayload,
  removal,
  stillThere,
  storedOf,
} from './work-records.ts'

/**
 * Maximum number of tries to store one portion of given-up items, or to carry out one whole replay. A try fails if
 * another node has removed an item or letter.
 */
const maxTries = 3

/** Turns items into dead letters, and dead letters into items again. */
export function createDeadLetters(parts: {
  store: Store
  inMemory: QueuesInMemory
  transitions: Transitions
  payload: ReadPayload
  newItem: NewItem
  clock: () => number
  appended: (queue: string) => void
}) {
  const { store, inMemory, transitions, payload, newItem, clock, appended } = parts

  return {
    /** Gives items up: turns them into dead letters. */
    giveUp,

    /** Gives up all waiting items of a queue, oldest first. Returns their number. */
    async giveUpAll(name: HeldQueue, reason: string): Promise<number> {
      const { inOrder, aside } = inMemory.get(name)
      const items = [...inOrder, ...aside]
      await giveUp(name, items, reason)
      return items.length
    },

    /** Turns dead letters into new items: all letters of a queue, or those of event `messageId`. Returns how many. */
    replay: (name: HeldQueue, messageId?: string): Promise<number> => replay(name, messageId, maxTries),
  }

  async function giveUp(name: HeldQueue, items: readonly WorkItem[], reason: string): Promise<void> {
    const givenUpAt = new Date(clock()).toISOString()
    const all = itemsIn(inMemory.get(name), sequencesOf(items)).sort(bySequence)
    for await (const batch of inBatches(all, (item) => payload(name, item))) {
      const payloads = new Map(batch.map(([{ sequence }, payload]) => [sequence, payload]))
      await giveUpPortion(name, payloads, { givenUpAt, reason }, maxTries)
    }
  }

  async function giveUpPortion(
    name: HeldQueue,
    payloads: ReadonlyMap<number, Buffer | undefined>,
    why: Pick<DeadLetter, 'givenUpAt' | 'reason'>,
    tries: number,
  ): Promise<void> {
    const waiting = itemsIn(inMemory.get(name), new Set(payloads.keys())).sort(bySequence)
    const letters = waiting.map((item) => ({ ...storedOf(item), ...why }))
    const { changes, apply } = transitions.removing(name, waiting, stillThere)
    try {
      await store.commit([
        ...changes,
        ...letters.map((letter) => deadLetterChange(name, letter, payloads.get(letter.sequence))),
      ])
    } catch (error) {
      if (!(error instanceof ConditionFailed) || tries === 1) throw error
      // Another node has settled some items. This node has received that change by now: try again with the rest.
      return giveUpPortion(name, payloads, why, tries - 1)
    }
    apply()
    const queue = inMemory.queueOf(name)
    for (const letter of letters) addLetterTo(queue, letter)
  }

  async function replay(name: HeldQueue, messageId: string | undefined, tries: number): Promise<number> {
    const { dead } = inMemory.get(name)
    const all = dead.filter((letter) => messageId === undefined || letter.messageId === messageId)
    let replayed = 0
    try {
      for await (const batch of inBatches(all, (letter) => readPayload(store, deadPrefix, name, letter))) {
        const letters = batch.map(([letter]) => letter)
        const items = batch.map(([{ messageId, details, element, acceptedAt, enqueuedAt }, payload]) => {
          const item = { ...newItem(messageId, details, element), acceptedAt: acceptedAt ?? enqueuedAt }
          return { item, payload }
        })
        await store.commit([
          ...letters.map((letter) => removal(deadPrefix, name, letter, stillThere)),
          ...items.map(({ item, payload }) => itemChange(name, item, payload)),
        ])
        inMemory.takeLetters(name, letters)
        for (const { item } of items) inMemory.add(name, item)
        appended(name)
        replayed += items.length
      }
      return replayed
    } catch (error) {
      if (!(error instanceof ConditionFailed) || tries === 1) throw error
      // Another node has replayed or removed a letter. This node has received that change by now: try again with the
      // rest.
      return replayed + (await replay(name, messageId, tries - 1))
    }
  }
}
