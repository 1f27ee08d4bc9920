import type { Message } from '../event/message.ts'
import { once } from '../store/once.ts'
import { type Change, keepsStored, type Order, type Store } from '../store/store.ts'
import { type Entry, padded } from './entry.ts'
import type { Journal } from './journal.ts'
import type { Returnable } from './returnable.ts'
import { collect, createNode, type Node, values } from './topic-tree.ts'

export type RetainedMessages = Awaited<ReturnType<typeof openRetained>>

/** A value that a new subscriber gets. */
export interface RetainedValue {
  topic: string
  slot: string
  /** Event time, milliseconds since the epoch. */
  time: number
  expires?: number
  qos: 0 | 1 | 2
  payload: Buffer
  /** Where in the journal its message lies. */
  position: number
  /** What a session that was away gets of it. */
  queue: Message['queue']
  /** Since the start of this node, the moment when it went out to those for whom nothing is stored. */
  sent?: number
}

/** Values side by side on one topic: a publisher that invents names without end must fill nobody's memory. */
const maxSlots = 100
/** Bytes of their payloads together; the latest always stays. */
const maxSlotBytes = 512 * 1024

/** An event time further ahead than this never keeps newer arrivals out (design.md §7), milliseconds. */
export const farFutureMs = 10 * 60 * 1000

/**
 * The retained messages: newest by event time per topic and slot. The store has their positions, the memory their
 * payloads as well.
 *
 * Several slots may live on one topic (control states by name); the one shown is the newest still valid,
 * so that a state whose time has come gives way without anybody publishing.
 */
export async function openRetained(parts: {
  store: Store
  journal: Journal
  returnable: Returnable
  clock: () => number
  /** Numbers what happens in this node. */
  nextMoment: () => number
}) {
  const { store, journal, returnable, clock, nextMoment } = parts
  const root = createNode<RetainedValue>()
  /** The nodes that hold values. */
  const byTopic = new Map<string, Node<RetainedValue>>()
  /** No longer shown because of a commit under way, which may fail: then they are shown again. */
  const replaced = new Map<unknown, readonly RetainedValue[]>()
  /** Pushed out of memory, not out of the store yet. */
  let pushedOut: Place[] = []
  const loading: Promise<unknown>[] = []
  for await (const [, value] of store.range(prefix)) {
    loading.push(readStored(value).then((read) => read && keep(read)))
    if (loading.length === loadedAtOnce) await Promise.all(loading.splice(0))
  }
  await Promise.all(loading)
  for (const value of [...values(root)].sort((a, b) => a.position - b.position)) isStored(value)
  store.watch?.(prefix, (change) => {
    if ('put' in change) {
      const { position, header } = decode(change.value)
      const entry = journal.recent(position)
      if (!entry) throw new Error(`the message of ${change.put} is missing`)
      const value = { ...header, position, payload: entry.payload }
      const shown = byTopic.get(value.topic)?.slots.get(value.slot)
      // A commit of this node that had no answer may be told late: event times decide, as they did in the store.
      const isLater = shown !== undefined && shown.position > position
      if (isLater && !keepsStored(value.time, orderAt(shown.time, clock()))) return
      keep(value)
      isStored(value)
    } else if ('del' in change) {
      const { topic, slot } = placeOf(change.del)
      const value = byTopic.get(topic)?.slots.get(slot)
      if (value) forget(value)
    }
  })

  return {
    /**
     * The changes that store messages as of `now`, where they are the first of their commit to take numbers. `at`: when
     * the journal says that it accepts them.
     */
    changes(messages: readonly Message[], now: number, at = now): Change[] {
      const isBehind = at - now > clockToleranceMs
      const behind: Change[] = isBehind ? [{ put: clockBehindKey, value: '', numbered: first }] : []
      const values = messages.flatMap((message, nth) => {
        const value = toValue(message, 0)
        if (!value) return []
        const { payload: _inTheJournal, position: _first, ...header } = value
        const order = orderAt(value.time, now)
        const numbered = { nth, at: 'value' as const }
        return [{ put: keyOf(value), value: JSON.stringify(header), numbered, order }]
      })
      return [...values, ...behind]
    },

    /**
     * Shows a stored message; the same rule as in the store, applied in the same order. Returns how to take it back
     * when it could not be stored after all: what is stored is shown again, unless there is something newer.
     */
    show(message: Message, now: number, position: number): (() => Promise<void>) | undefined {
      const value = toValue(message, position)
      if (!value) return undefined
      const shown = byTopic.get(value.topic)?.slots.get(value.slot)
      if (shown && keepsStored(shown.time, orderAt(value.time, now))) return undefined
      keep(value)
      if (shown) replaced.set(position, [shown])
      return () => takeBack(value)
    },

    /** A message that is shown is stored for certain. */
    stored({ topic, retained, position }: Entry): void {
      replaced.delete(position)
      const value = retained && byTopic.get(topic)?.slots.get(retained.slot)
      if (value?.position === position) isStored(value)
    },

    /** This message goes out on its topic now, to those for whom nothing is stored. */
    sent(topic: string, position: number): void {
      const moment = nextMoment()
      for (const value of byTopic.get(topic)?.slots.values() ?? []) {
        if (value.position === position) value.sent = moment
      }
    },

    /** Whether the journal must keep the message at this position. */
    names(topic: string, position: number): boolean {
      const isNamed = (value: RetainedValue) => value.topic === topic && value.position === position
      return (
        [...(byTopic.get(topic)?.slots.values() ?? [])].some(isNamed) ||
        [...replaced.values()].flat().some(isNamed)
      )
    },

    /** The topics that hold a value and match `filter`. */
    topics(filter: string): string[] {
      const topics: string[] = []
      collect(root, filter.split('/'), 0, topics)
      return topics
    },

    /** The value of a topic: the newest that is valid now. */
    current(topic: string): RetainedValue | undefined {
      const now = clock()
      let newest: RetainedValue | undefined
      for (const value of byTopic.get(topic)?.slots.values() ?? []) {
        const valid = value.expires === undefined || value.expires > now
        if (valid && !(newest && keepsStored(newest.time, orderAt(value.time, now)))) newest = value
      }
      return newest
    },

    /** Removes everything retained on `topic`; false when there was nothing. */
    async clear(topic: string): Promise<boolean> {
      const slots = [...(byTopic.get(topic)?.slots.values() ?? [])]
      if (slots.length === 0) return false
      // At its place among the commits: what is published after it is shown after it.
      const hide = once(() => {
        for (const value of slots) forget(value)
      })
      replaced.set(slots, slots)
      const changes = slots.map((value) => ({ del: keyOf(value) }))
      try {
        await store.commit([...changes, { put: clearedKey(topic), value: '', numbered: first }], hide)
      } catch (error) {
        for (const value of slots) if (!byTopic.get(topic)?.slots.has(value.slot)) keep(value)
        throw error
      } finally {
        replaced.delete(slots)
      }
      hide()
      return true
    },

    /** Removes values whose time is over. */
    async sweep(): Promise<void> {
      const now = clock()
      const expired = [...values(root)].filter((value) => value.expires !== undefined && value.expires <= now)
      // A name that has come back since is not taken away again.
      const absent = pushedOut.filter(({ topic, slot }) => !byTopic.get(topic)?.slots.has(slot))
      const over = [...expired, ...absent]
      // A newer state of the same name may be on its way into the store: it stays.
      const changes = over.map((value) => ({
        del: keyOf(value),
        order: { time: value.time, horizon: Infinity },
      }))
      const pushed = pushedOut.length
      await store.commit(changes)
      pushedOut = pushedOut.slice(pushed)
      for (const value of expired) {
        if (byTopic.get(value.topic)?.slots.get(value.slot) === value) forget(value)
      }
    },
  }

  async function takeBack(value: RetainedValue): Promise<void> {
    const stored = await store.get(keyOf(value))
    if (byTopic.get(value.topic)?.slots.get(value.slot) === value) {
      forget(value)
      const before = stored && (await readStored(stored))
      const shown = before && byTopic.get(value.topic)?.slots.get(value.slot)
      if (before && !(shown && shown.position > before.position)) {
        keep(before)
        isStored(before)
      }
    }
    replaced.delete(value.position)
  }

  async function readStored(stored: Buffer): Promise<RetainedValue | undefined> {
    const { position, header } = decode(stored)
    const entry = await journal.get(position)
    // With a copy of the payload, or the whole chunk read from the store would stay in memory.
    return entry && { ...header, position, payload: Buffer.from(entry.payload) }
  }

  /** From now on a session that was away gets it. */
  function isStored(value: RetainedValue): void {
    if (value.queue.keep !== 'latest') return
    const { topic, qos, position, queue } = value
    returnable.setLatest({ topic, qos, position, ...queue })
  }

  function addNode(topic: string): Node<RetainedValue> {
    let node = root
    for (const level of topic.split('/')) {
      let child = node.children.get(level)
      if (!child) {
        child = createNode()
        node.children.set(level, child)
      }
      node = child
    }
    node.topic = topic
    byTopic.set(topic, node)
    return node
  }

  function keep(value: RetainedValue): void {
    const node = byTopic.get(value.topic) ?? addNode(value.topic)
    node.slots.delete(value.slot)
    const last = [...node.slots.values()].at(-1)
    node.slots.set(value.slot, value)
    if (last && value.position < last.position) node.slots = inOrderOfPosition(node.slots)
    pushOut(node.slots)
  }

  /** Keeps the number and the bytes of the values of a topic within their bounds: the oldest go. */
  function pushOut(slots: Map<string, RetainedValue>): void {
    let bytes = 0
    for (const { payload } of slots.values()) bytes += payload.length
    for (const oldest of slots.values()) {
      if (slots.size <= maxSlots && (bytes <= maxSlotBytes || slots.size === 1)) return
      bytes -= oldest.payload.length
      slots.delete(oldest.slot)
      pushedOut.push({ topic: oldest.topic, slot: oldest.slot, time: oldest.time })
    }
  }

  function forget(value: RetainedValue): void {
    const path: [Node<RetainedValue>, string][] = []
    let node: Node<RetainedValue> | undefined = root
    for (const level of value.topic.split('/')) {
      if (!node) return
      path.push([node, level])
      node = node.children.get(level)
    }
    node?.slots.delete(value.slot)
    if (node?.slots.size === 0) byTopic.delete(value.topic)
    returnable.removeLatest(value.topic, value.position)
    for (const [parent, level] of path.reverse()) {
      const child = parent.children.get(level)
      if (child && child.slots.size === 0 && child.children.size === 0) parent.children.delete(level)
    }
  }
}

const prefix = 'retained/'
/** The number of its commit. */
const first = { nth: 0, at: 'value' } as const

/** Where the place in the journal lies at which a topic was cleared last. */
export function clearedKey(topic: string): string {
  return `cleared/${topic}`
}

/** Where the place of the last message lies whose node had a clock behind the journal: it was set back, or is wrong. */
export const clockBehindKey = 'clock-behind'
/** The clocks of nodes differ by no more than this, milliseconds. */
const clockToleranceMs = 30_000

/** So many payloads are read at once at the start. */
const loadedAtOnce = 100

/** Where a value lies, without its payload. */
type Place = Pick<RetainedValue, 'topic' | 'slot' | 'time'>

function toValue(message: Message, position: number): RetainedValue | undefined {
  const { topic, payload, qos, queue, retained } = message
  return retained && { topic, qos, payload, queue, ...retained, position }
}

function inOrderOfPosition(slots: ReadonlyMap<string, RetainedValue>): Map<string, RetainedValue> {
  return new Map([...slots].sort(([, a], [, b]) => a.position - b.position))
}

/** As stored: the position, and what else is to be known. */
function decode(stored: Buffer): {
  position: number
  header: Omit<RetainedValue, 'position' | 'payload' | 'sent'>
} {
  const end = padded(0).length
  return {
    position: Number(stored.toString('latin1', 0, end)),
    header: JSON.parse(stored.toString('utf8', end)),
  }
}

/** JSON keeps slots apart that differ only in unpaired surrogates, and from the topic. */
function keyOf({ topic, slot }: Pick<Place, 'topic' | 'slot'>): string {
  return `${prefix}${topic}\n${JSON.stringify(slot)}`
}

function placeOf(key: string): Pick<Place, 'topic' | 'slot'> {
  const end = key.indexOf('\n')
  return { topic: key.slice(prefix.length, end), slot: JSON.parse(key.slice(end + 1)) }
}

function orderAt(time: number, now: number): Order {
  return { time, horizon: now + farFutureMs }
}
