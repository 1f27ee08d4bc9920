import { digits, digitsOf, keepsStored } from '../store/commit.ts'
import { type CommitPart, commitTogether } from '../store/commit-together.ts'
import { storeKeys } from '../store/keys.ts'
import { type Change, type Condition, ConditionFailed, type Store } from '../store/store.ts'
import type { Journal } from './journal.ts'
import type { RetainedValue, Slot, ValueKey } from './retained-value.ts'
import {
  createRetainedValues,
  createRetaining,
  keyOf,
  newestOf,
  orderAt,
  parseKey,
  type RetainedValues,
  retainedPrefix,
  toValue,
} from './retained-values.ts'
import type { Returnable } from './returnable.ts'
import { createTopicTree } from './topic-tree.ts'

export type RetainedMessages = Awaited<ReturnType<typeof openRetained>>

/**
 * Opens the retained messages: for each topic and slot, the one with the newest event time. The store has only
 * positions in the journal, the memory also the payloads.
 *
 * A topic has one slot for each name of a control state. When the newest state expires, new subscribers get the newest
 * state that is still valid.
 */
export async function openRetained(parts: {
  store: Store
  journal: Journal
  returnable: Returnable
  clock: () => number
}) {
  const { store, journal, returnable, clock } = parts
  const values = createRetainedValues(returnable)
  await load(parts, values)
  const ended = await openEnded(store)
  store.onOthers(retainedPrefix, (key, value) => take(key, value, values, { journal, now: clock() }))

  return {
    ...createRetaining(values),

    /** Whether the journal must keep the message at this position. */
    refersTo: values.refersTo,

    /** The topics that hold a value and match a filter. */
    topics: values.topics,

    /** The value of a topic: the newest that is valid now. */
    current: (topic: string): RetainedValue | undefined => newestOf(values.of(topic), clock()),

    /** Like `current`, but only among the values that are stored already. */
    stored: (topic: string): RetainedValue | undefined => newestOf(values.storedOf(topic), clock()),

    /** The stored values of all slots of a topic, expired ones too, in the order of positions. */
    storedValues: values.storedOf,

    /** The topics with a value that will expire. */
    expiring: values.expiring,
    /** Calls `listener` when the value of a topic may have changed without a message on the topic. */
    onSilentChange: values.onSilentChange,

    /** The topics that match a filter and had a value once, but have none now. */
    ended(filter: string): string[] {
      const topics = new Set([...ended.matching(filter), ...values.topics(filter)])
      return [...topics].filter((topic) => !newestOf(values.of(topic), clock()))
    },

    /** The value in one slot of a topic, even an expired value. */
    at: (topic: string, slot: string): RetainedValue | undefined => values.get(topic, slot),

    /** Removes values: `clear` and `sweep`. */
    ...createRemoving(parts, values, ended),
  }
}

/** Under this key, the store notes that a topic had a value once. A bridge may have kept it. */
const endedPrefix = storeKeys.ended.prefix

/** The topics that lost their last value at some time. They may have one again. */
async function openEnded(store: Store) {
  const topics = createTopicTree()
  const all = new Set<string>()
  const note = (topic: string) => {
    if (!all.has(topic)) topics.add(topic)
    all.add(topic)
  }
  for await (const [key] of store.range(endedPrefix)) note(key.slice(endedPrefix.length))
  store.onOthers(endedPrefix, (key) => note(key.slice(endedPrefix.length)))
  return {
    matching: topics.matching,
    /** Notes topics that lose their last value by a commit. */
    note: (ending: readonly string[]): CommitPart => ({
      changes: ending
        .filter((topic) => !all.has(topic))
        .map((topic) => ({ put: endedPrefix + topic, value: '' })),
      end(how) {
        if (how !== 'failed') for (const topic of ending) note(topic)
      },
    }),
  }
}

/** At the start, this many payloads are read at the same time. */
const loadedAtOnce = 100

async function load(
  { store, journal }: { store: Store; journal: Journal },
  values: RetainedValues,
): Promise<void> {
  const loaded: RetainedValue[] = []
  // A page is read as a whole: a read that fails while the range goes on would be a rejection that nobody awaits.
  let page: Buffer[] = []
  const readPage = async () => {
    const read = await Promise.all(page.map((value) => readStored(journal, value)))
    for (const value of read) if (value) loaded.push(value)
    page = []
  }
  for await (const [, value] of store.range(retainedPrefix)) {
    page.push(value)
    if (page.length === loadedAtOnce) await readPage()
  }
  await readPage()
  for (const value of loaded.sort((a, b) => a.position - b.position)) values.put(value)
}

/** Applies a change of the retained messages that another node has stored. */
function take(
  key: string,
  stored: Buffer | undefined,
  values: RetainedValues,
  { journal, now }: { journal: Journal; now: number },
): void {
  const { topic, slot } = parseKey(key)
  if (!stored) {
    values.remove(topic, slot)
    return
  }
  const position = positionOf(stored)
  const entry = journal.recent(position)
  const value = entry && toValue(entry, position, entry.at)
  if (!value) throw new Error(`the message of ${key} is missing`)
  const shown = values.get(topic, slot)
  // If the store does not answer a commit of this node in time, the change of that commit can arrive here late: after
  // the change of a newer commit. Then event times decide, as in the store.
  const isLater = shown !== undefined && shown.position > position
  if (isLater && !keepsStored(value.time, orderAt(shown.time, now))) return
  values.put(value)
}

async function readStored(journal: Journal, stored: Buffer): Promise<RetainedValue | undefined> {
  const position = positionOf(stored)
  const entry = await journal.get(position)
  return entry && toValue(entry, position, entry.at)
}

/** A stored value is the position of its message in the journal. */
function positionOf(stored: Buffer): number {
  return Number(stored.toString('latin1', 0, digits))
}

/** The value under this key is the position at which the topic was last cleared. */
export function clearedKey(topic: string): string {
  return storeKeys.cleared.prefix + topic
}

/** A sweep removes this many values in one commit. */
const removedAtOnce = 300

/** Removes retained values from the store and from memory. */
function createRemoving(
  { store, clock }: { store: Store; clock: () => number },
  values: RetainedValues,
  ended: Awaited<ReturnType<typeof openEnded>>,
) {
  return {
    /** Removes all values of a topic. Resolves with false if there was none. */
    async clear(topic: string): Promise<boolean> {
      const shown = [...values.of(topic)]
      if (shown.length === 0) return false
      const pushedOut = [...values.pushedOut()].filter((value) => value.topic === topic)
      const removed = [...shown, ...pushedOut].map(({ slot }) => ({ topic, slot }))
      const numbered = { nth: 0, at: 'value' } as const
      await remove(removed, [{ put: clearedKey(topic), value: '', numbered }])
      return true
    },

    /** Removes expired values, and stored values that were pushed out of memory. */
    async sweep(): Promise<void> {
      const over = [...values.expired(clock()), ...values.pushedOut()]
      for (let from = 0; from < over.length; from += removedAtOnce) {
        await removeStill(over.slice(from, from + removedAtOnce))
      }
    },
  }

  /** Removes these values. The next sweep handles slots that have changed meanwhile or have a commit under way. */
  async function removeStill(over: readonly ValueKey[]): Promise<void> {
    const still = over.filter(values.isStill)
    const removed = still.map(({ topic, slot, position }) => ({
      topic,
      slot,
      when: { value: digitsOf(position) },
    }))
    try {
      await remove(removed)
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error
      await removeStill(still.filter((value) => keyOf(value) !== error.key))
    }
  }

  async function remove(
    removed: readonly (Slot & { when?: Condition })[],
    alongside: readonly Change[] = [],
  ): Promise<void> {
    const keys = new Set(removed.map(keyOf))
    const ending = [...new Set(removed.map(({ topic }) => topic))].filter((topic) =>
      [...values.of(topic)].every((value) => keys.has(keyOf(value))),
    )
    // The conditions do not have `onlyOthers`. An earlier commit of this node may still wait, and may change a slot.
    const deletions = removed.map((slot) => ({ del: keyOf(slot), when: slot.when }))
    let ends: ReturnType<typeof values.begin>[] = []
    const removal: CommitPart = {
      changes: [...deletions, ...alongside],
      begin() {
        ends = removed.map(({ topic, slot }) => values.begin({ topic, slot }))
      },
      end(how) {
        for (const end of ends) end(how)
      },
    }
    await commitTogether(store, [() => removal, () => ended.note(ending)])
  }
}
