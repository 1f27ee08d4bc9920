import type { Message } from '../../event/message.ts'
import { createSequences, type Sequences } from '../../store/nodes/sequences.ts'
import { once } from '../../store/once.ts'
import { type Change, keepsStored, type Order, type Store } from '../../store/store.ts'
import { decodeRecord, encodeRecord } from '../queue/record.ts'
import { createMoments, type Moments } from './moments.ts'
import { bodyPrefix, createRetainedBodies } from './retained-bodies.ts'

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
  /** Id of the stored payload where others have the same. */
  body?: string
  /** Number of its arrival, higher than those of all before it on any node; absent in records of earlier releases. */
  arrival?: number
  /** Since the start of this node, the moments when it went out live. Who was subscribed by then has it. */
  live?: LiveMoments
}

/** Absent: not yet, or not in this way. */
interface LiveMoments {
  /** This node took it into the queues of persistent sessions. */
  planned?: number
  /** Another node did so before, and this one heard of it. */
  heard?: number
  /** It went out to those for whom nothing is stored. */
  sent?: number
}

/** Values side by side on one topic: a publisher that invents names without end must fill nobody's memory. */
const maxSlots = 100
/** Bytes of their payloads together; the latest always stays. */
const maxSlotBytes = 512 * 1024

/** An event time further ahead than this never keeps newer arrivals out (design.md §7), milliseconds. */
export const farFutureMs = 10 * 60 * 1000

/**
 * The retained messages: newest by event time per topic and slot, mirrored in memory.
 *
 * Several slots may live on one topic (control states by name); the one shown is the newest still valid,
 * so that a state whose time has come gives way without anybody publishing.
 */
export async function openRetained(
  store: Store,
  clock: () => number,
  moments: Moments = createMoments(),
  sequences: Sequences = createSequences(clock, () => 0),
) {
  const root = createNode()
  /** Of messages that are on their way. */
  const arrivals = new WeakMap<Message, number>()
  /** Pushed out of memory, not out of the store yet. */
  let pushedOut: Place[] = []
  const bodies = createRetainedBodies()
  for await (const [key, payload] of store.range(bodyPrefix)) bodies.take(key, payload)
  for await (const [, value] of store.range(prefix)) adoptStored(value)
  store.watch?.(bodyPrefix, (change) => {
    if ('put' in change) bodies.take(change.put, change.value)
    else if ('del' in change) bodies.removed(change.del)
  })
  store.watch?.(prefix, (change) => {
    if ('put' in change) adoptStored(change.value, { heard: moments.next() })
    else if ('del' in change) {
      const { topic, slot } = placeOf(change.del)
      const value = nodeOf(topic)?.slots.get(slot)
      if (value) forget(value)
    }
  })

  return {
    /** The changes that store messages as of `now`; none for those that are not retained. */
    changes(messages: readonly Message[], now: number): Change[] {
      const kept = messages.filter(({ retained }) => retained)
      // Bodies first: another node reads the changes in this order.
      const changes = bodies.share(kept.map(({ payload }) => payload))
      const arrival = sequences.next()
      for (const message of kept) {
        arrivals.set(message, arrival)
        const value = toValue(message)
        if (!value) continue
        const { payload, live: _live, ...header } = value
        const record = value.body === undefined ? encodeRecord(header, payload) : encodeRecord(header)
        changes.push({ put: keyOf(value), value: record, order: orderAt(value.time, now) })
      }
      return changes
    },

    /**
     * Shows a stored message; the same rule as in the store, applied in the same order. Returns how to take it back
     * when it could not be stored after all: what is stored is shown again, unless there is something newer.
     */
    show(message: Message, now: number, planned: number): (() => Promise<void>) | undefined {
      const value = toValue(message, { planned })
      if (!value) return undefined
      const shown = nodeOf(value.topic)?.slots.get(value.slot)
      if (shown && keepsStored(shown.time, orderAt(value.time, now))) return undefined
      keep(value)
      return () => takeBack(value)
    },

    /** This payload goes out on its topic now, to those for whom nothing is stored. */
    sent(topic: string, payload: Buffer): void {
      const moment = moments.next()
      for (const value of nodeOf(topic)?.slots.values() ?? []) {
        if (value.payload.equals(payload)) value.live = { ...value.live, sent: moment }
      }
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
      for (const value of nodeOf(topic)?.slots.values() ?? []) {
        const valid = value.expires === undefined || value.expires > now
        if (valid && !(newest && keepsStored(newest.time, orderAt(value.time, now)))) newest = value
      }
      return newest
    },

    /** Removes everything retained on `topic`; false when there was nothing. */
    async clear(topic: string): Promise<boolean> {
      const slots = [...(nodeOf(topic)?.slots.values() ?? [])]
      if (slots.length === 0) return false
      // At its place among the commits: what is published after it is shown after it.
      const hide = once(() => {
        for (const value of slots) forget(value)
      })
      const changes = slots.map((value) => ({ del: keyOf(value) }))
      try {
        await store.commit(changes, hide)
      } catch (error) {
        for (const value of slots) if (!nodeOf(topic)?.slots.has(value.slot)) keep(value)
        throw error
      }
      hide()
      return true
    },

    /** Removes values whose time is over. */
    async sweep(): Promise<void> {
      const now = clock()
      const expired = [...values(root)].filter((value) => value.expires !== undefined && value.expires <= now)
      // A name that has come back since is not taken away again.
      const absent = pushedOut.filter(({ topic, slot }) => !nodeOf(topic)?.slots.has(slot))
      const over = [...expired, ...absent]
      // A newer state of the same name may be on its way into the store: it stays.
      const changes = over.map((value) => ({
        del: keyOf(value),
        order: { time: value.time, horizon: Infinity },
      }))
      const pushed = pushedOut.length
      const unused = bodies.sweep()
      await store.commit([...changes, ...unused.changes])
      unused.stored()
      pushedOut = pushedOut.slice(pushed)
      for (const value of expired) {
        if (nodeOf(value.topic)?.slots.get(value.slot) === value) forget(value)
      }
    },
  }

  async function takeBack(value: RetainedValue): Promise<void> {
    const stored = await store.get(keyOf(value))
    if (nodeOf(value.topic)?.slots.get(value.slot) !== value) return
    if (!stored || !adoptStored(stored)) forget(value)
  }

  /** False where its body is gone: nothing referred to it as far as the nodes knew. */
  function adoptStored(stored: Buffer, live?: LiveMoments): boolean {
    const { header, payload } = decodeRecord<Omit<RetainedValue, 'payload' | 'live'>>(stored)
    if (header.arrival !== undefined) sequences.heard(header.arrival)
    // With a copy of the payload, or the whole chunk read from the store would stay in memory.
    const whole = header.body === undefined ? Buffer.from(payload) : bodies.payloadOf(header.body)
    if (whole) keep({ ...header, payload: whole, ...(live && { live }) })
    return whole !== undefined
  }

  function toValue(message: Message, live: LiveMoments = {}): RetainedValue | undefined {
    const { topic, payload, qos, retained } = message
    if (!retained) return undefined
    const [body, arrival] = [bodies.idOf(payload), arrivals.get(message)]
    const known = { ...(body !== undefined && { body }), ...(arrival !== undefined && { arrival }) }
    return { topic, qos, payload, ...retained, ...known, live }
  }

  function nodeOf(topic: string): Node | undefined {
    let node: Node | undefined = root
    for (const level of topic.split('/')) node = node?.children.get(level)
    return node
  }

  function keep(value: RetainedValue): void {
    let node = root
    for (const level of value.topic.split('/')) {
      let child = node.children.get(level)
      if (!child) {
        child = createNode()
        node.children.set(level, child)
      }
      node = child
    }
    node.topic = value.topic
    bodies.hold(value.body)
    bodies.release(node.slots.get(value.slot)?.body)
    node.slots.delete(value.slot)
    const last = [...node.slots.values()].at(-1)
    node.slots.set(value.slot, value)
    if (last && arrivalOf(value) < arrivalOf(last)) node.slots = inOrderOfArrival(node.slots)
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
      bodies.release(oldest.body)
      pushedOut.push({ topic: oldest.topic, slot: oldest.slot, time: oldest.time })
    }
  }

  function forget(value: RetainedValue): void {
    const path: [Node, string][] = []
    let node: Node | undefined = root
    for (const level of value.topic.split('/')) {
      if (!node) return
      path.push([node, level])
      node = node.children.get(level)
    }
    bodies.release(node?.slots.get(value.slot)?.body)
    node?.slots.delete(value.slot)
    for (const [parent, level] of path.reverse()) {
      const child = parent.children.get(level)
      if (child && child.slots.size === 0 && child.children.size === 0) parent.children.delete(level)
    }
  }
}

const prefix = 'retained/'

/** Where a value lies, without its payload. */
type Place = Pick<RetainedValue, 'topic' | 'slot' | 'time'>

interface Node {
  children: Map<string, Node>
  /** In the order of arrival, which decides between equal times. */
  slots: Map<string, RetainedValue>
  topic: string
}

function createNode(): Node {
  return { children: new Map(), slots: new Map(), topic: '' }
}

function inOrderOfArrival(slots: ReadonlyMap<string, RetainedValue>): Map<string, RetainedValue> {
  return new Map([...slots].sort(([, a], [, b]) => arrivalOf(a) - arrivalOf(b)))
}

function arrivalOf({ arrival = 0 }: RetainedValue): number {
  return arrival
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

function* values(node: Node): Generator<RetainedValue> {
  yield* node.slots.values()
  for (const child of node.children.values()) yield* values(child)
}

function collect(node: Node, levels: string[], depth: number, topics: string[]): void {
  const level = levels[depth]
  if (level === '#') {
    for (const below of nodesBelow(node, depth)) if (below.slots.size > 0) topics.push(below.topic)
  } else if (level === '+') {
    for (const [name, child] of node.children) {
      if (depth > 0 || !name.startsWith('$')) collect(child, levels, depth + 1, topics)
    }
  } else if (level !== undefined) {
    const child = node.children.get(level)
    if (child) collect(child, levels, depth + 1, topics)
  } else if (node.slots.size > 0) {
    topics.push(node.topic)
  }
}

/** The node itself (`a/#` matches `a`, §4.7.1.2) and everything below; `#` alone spares `$…` [MQTT-4.7.2-1]. */
function* nodesBelow(node: Node, depth: number): Generator<Node> {
  yield node
  for (const [name, child] of node.children) {
    if (depth > 0 || !name.startsWith('$')) yield* nodesBelow(child, depth + 1)
  }
}
