import type { Message } from '../event/message.ts'
import type { Change, Store } from '../store/store.ts'
import { appendChanges, type Entry, journalPrefix, positionIn, readEntry } from './entry.ts'
import { createNamed } from './named.ts'
import { createReading, withPayloadOf } from './reading.ts'

export type Journal = Awaited<ReturnType<typeof openJournal>>

/** Messages that are read again within moments stay in memory: this many at least, and twice as many at most. */
const recentCount = 1_000
/** Bytes of their payloads, in the same way. */
const recentBytes = 4 * 1024 * 1024
/** A clock that is set back by more was wrong before, milliseconds. */
const maxBackMs = 24 * 3600 * 1000
/**
 * What was accepted, once, in order. A message gets its position in the commit that accepts it. Readers keep a position;
 * the journal knows none of them.
 */
export async function openJournal(store: Store) {
  const recent = createRecent()
  const listeners: ((entry: Entry) => void)[] = []
  const everyListeners = new Set<(entry: Entry) => void>()
  /** This node has seen all positions up to here that it will ever see. */
  let head = await store.lastNumber()
  let floor = 1
  /** When the newest message was accepted. */
  let newestAt = await lastAt(store)
  store.onOthers(journalPrefix, (change) => {
    if ('tell' in change) return
    if ('del' in change) return recent.forget(positionIn(change.del))
    const { entry, sharedWith } = readEntry(positionIn(change.put), change.value)
    const whole =
      sharedWith === undefined ? entry : withPayloadOf(entry, recent.get(entry.position - sharedWith))
    if (!whole) throw new Error(`the payload of message ${entry.position} is missing`)
    take(whole)
    for (const listener of listeners) listener(whole)
  })

  return {
    /**
     * When something happens by a clock: never before the newest message was accepted. So times rise with positions, also
     * where the clock of a node is set back; unless by so much that it was wrong before, and everything would be.
     */
    timeOf(now: number): number {
      newestAt = Math.max(now, newestAt - now > maxBackMs ? now : newestAt)
      return newestAt
    },

    append: (messages: readonly Message[], at: number): Change[] => appendChanges(messages, at),

    /** What this node has appended is stored, from the position `first` on. */
    appended(messages: readonly Message[], first: number, at: number): Entry[] {
      return messages.map((message, nth) => {
        // In place: a copy of each message would be as long in memory as the message.
        const entry = Object.assign(message, { position: first + nth, at })
        take(entry)
        return entry
      })
    },

    /** Calls back with each message that another node has appended, in order. */
    onAppended: (listener: (entry: Entry) => void): void => void listeners.push(listener),

    /** Calls back with each message from now on, whichever node appends it. Returns how to end that. */
    onEach(listener: (entry: Entry) => void): () => void {
      everyListeners.add(listener)
      return () => void everyListeners.delete(listener)
    },

    /** The position of the last message that this node knows of. */
    head: (): number => head,

    /** The position from which on the whole journal is kept; below it only what the rules of its stream keep. */
    floor: (): number => floor,
    raiseFloor(position: number): void {
      floor = Math.max(floor, position)
    },

    /** Messages by their positions, and their positions by what they are about. */
    ...createReading(store, recent.get),

    /** What is kept whatever the rules say. */
    named: createNamed(),

    /** The message at a position, where it was appended a moment ago. */
    recent: (position: number): Entry | undefined => recent.get(position),

    /** What this node has removed is no longer there. */
    forget: recent.forget,
  }

  function take(entry: Entry): void {
    head = Math.max(head, entry.position)
    newestAt = Math.max(newestAt, entry.at)
    recent.keep(entry)
    for (const listener of everyListeners) listener(entry)
  }
}

async function lastAt(store: Store): Promise<number> {
  const [last] = await store.last(journalPrefix, 1)
  return last ? readEntry(positionIn(last[0]), last[1]).entry.at : 0
}

/** The oldest go together: one by one, a map would look for its first entry behind all that were deleted. */
function createRecent() {
  let current = new Map<number, Entry>()
  let former = new Map<number, Entry>()
  /** Of the current ones. */
  let bytes = 0
  let lastPayload: Buffer | undefined

  return {
    get: (position: number): Entry | undefined => current.get(position) ?? former.get(position),
    forget(position: number): void {
      current.delete(position)
      former.delete(position)
    },
    keep(entry: Entry): void {
      const { payload, refused, position } = entry
      // Messages of one event share it: counted for each, the first would have to go before the last is there.
      const own = payload === lastPayload ? 0 : payload.length + (refused?.head.length ?? 0)
      lastPayload = payload
      if (current.size >= recentCount || (own > 0 && bytes >= recentBytes)) {
        former = current
        current = new Map()
        bytes = 0
      }
      bytes += own
      current.set(position, entry)
    },
  }
}
