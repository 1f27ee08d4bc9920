import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Message } from '../event/message.ts'
import { appendChanges } from '../journal/entry.ts'
import { numbersTaken } from '../store/commit.ts'
import { padded, sequenceTime } from '../store/nodes/sequences.ts'
import { type Change, ConditionFailed, type Store } from '../store/store.ts'
import { formatChange, formatKey, isPresentFormat } from '../store/stored-value.ts'
import type { Log } from '../telemetry/log.ts'
import {
  bodyPrefix,
  type FormerRecord,
  type QueueEntry,
  queuedMessage,
  queuePrefix,
  readFormerRecord,
  readQueueEntry,
  readRetained,
  retainedMessage,
  retainedPrefix,
  sharedPrefix,
} from './former-store.ts'
import type { Owed } from './session/in-flight.ts'
import { recordChanges, recordPrefix, toStored } from './session/session-record.ts'

/** One commit has about this many changes, or this many bytes of values. */
const portionSize = { changes: 2_000, bytes: 1024 * 1024 }
/** Number of converted entries of one kind between two lines of the log. */
const linesEvery = 10_000
/** A node that converts the store makes a commit at least this often, milliseconds. */
const aliveMs = 5_000
/** Each commit requires the mark of the previous commit. So only one node can convert. */
const markKey = 'take-over/mark'
/** Entries for the conversion: the journal position of each former message, by `sequence`. */
const takenPrefix = 'take-over/position/'

/**
 * Yields changes that convert other former data, such as queues of webhooks. The changes of one array must be in one
 * commit, in this order.
 */
export type FormerWork = (store: Store) => AsyncIterable<readonly Change[]>

/**
 * Converts a former or empty store to this release, before other code reads the store. After a crash, the next start
 * goes on (docs/decisions.md, "A store of the release before is taken over in place"). Resolves with false if the store
 * already had this format.
 */
export function createTakeOver(work: FormerWork, size = portionSize) {
  return async (store: Store, log: Log): Promise<boolean> => {
    if (await isPresentFormat(store)) return false
    while (!(await isPresentFormat(store))) {
      const before = await store.get(markKey)
      if (before && store.isShared && (await hasMoved(store, before))) continue
      try {
        await run(store, log, work, size, before)
      } catch (error) {
        // Another node converts the store: the loop waits for that node.
        if (!(error instanceof ConditionFailed)) throw error
      }
    }
    return true
  }
}

async function hasMoved(store: Store, before: Buffer): Promise<boolean> {
  await delay(aliveMs)
  return !(await store.get(markKey))?.equals(before)
}

async function run(
  store: Store,
  log: Log,
  work: FormerWork,
  size: PortionSize,
  before: Buffer | undefined,
): Promise<void> {
  const { commit, end } = await beginConversion(store, before)
  const done = { messages: 0, retained: 0, sessions: 0, items: 0 }
  const portions = createPortions(commit, size)
  const count = (what: keyof typeof done) => {
    if (++done[what] % linesEvery === 0) log.info(done, 'taking over the store of the former release')
  }
  await takeMessages(store, portions, () => count('messages'))
  await takeRetained(store, portions, () => count('retained'))
  await takeSessions(store, portions, () => count('sessions'))
  for (const prefix of [queuePrefix, bodyPrefix, sharedPrefix, takenPrefix]) {
    for await (const [key] of store.range(prefix)) await portions.add([{ del: key }])
  }
  for await (const changes of work(store)) {
    await portions.add(changes)
    if (changes.some((change) => 'put' in change)) count('items')
  }
  await portions.flush()
  await end()
  const isAny = Object.values(done).some((number) => number > 0)
  if (isAny) log.info(done, 'the store of the former release is taken over')
}

/** Claims the conversion for this node alone. Rejects with `ConditionFailed` if another node was first. */
async function beginConversion(store: Store, before: Buffer | undefined) {
  const run = randomUUID()
  let number = 0
  let mark = ''
  const next = (when: { value: Buffer | string } | 'absent'): Change => {
    mark = `${run} ${++number}`
    return { put: markKey, value: mark, when }
  }
  await store.commit([{ check: formatKey, when: 'absent' }, next(before ? { value: before } : 'absent')])
  return {
    commit: (changes: readonly Change[]) => store.commit([next({ value: mark }), ...changes]),
    end: () => store.commit([{ del: markKey, when: { value: mark } }, formatChange()]),
  }
}

type PortionSize = typeof portionSize
type Portions = ReturnType<typeof createPortions>

/** Collects changes, and stores them in portions: commits of limited size. */
function createPortions(commit: (changes: readonly Change[]) => Promise<number>, size: PortionSize) {
  let changes: Change[] = []
  let bytes = 0
  /** How many numbers `changes` take. */
  let numbers = 0

  return {
    /** Adds changes that must be in one commit. Their `nth` begins at 0 in each call. */
    async add(together: readonly Change[]): Promise<void> {
      for (const change of together) {
        const numbered = 'numbered' in change && change.numbered
        changes.push(
          numbered ? { ...change, numbered: { ...numbered, nth: numbers + numbered.nth } } : change,
        )
        if ('value' in change) bytes += change.value.length
      }
      numbers += numbersTaken(together)
      if (changes.length >= size.changes || bytes >= size.bytes) await flush()
    },
    flush,
  }

  async function flush(): Promise<void> {
    if (changes.length > 0) await commit(changes)
    changes = []
    bytes = 0
    numbers = 0
  }
}

/** Moves the queued messages into the journal, in the order of acceptance. */
async function takeMessages(store: Store, portions: Portions, count: () => void): Promise<void> {
  /** For each sequence, the queue entry with the highest granted QoS. */
  const entries = new Map<number, QueueEntry>()
  for await (const [, value] of store.range(queuePrefix)) {
    const entry = readQueueEntry(value)
    const known = entries.get(entry.sequence)
    if (!known || known.qos < entry.qos) entries.set(entry.sequence, entry)
  }
  for await (const [key, body] of store.range(bodyPrefix)) {
    const sequence = Number(key.slice(bodyPrefix.length))
    const entry = entries.get(sequence)
    // No session waits for this message: `run` removes the payload.
    if (!entry) continue
    const message = queuedMessage(entry, body)
    const taken: Change = { put: takenKey(sequence), value: '', numbered: { nth: 0, at: 'value' } }
    await portions.add([...appendChanges([message], sequenceTime(sequence)), taken, { del: key }])
    count()
  }
  await portions.flush()
}

type Retained = NonNullable<ReturnType<typeof readRetained>> & { key: string }

/**
 * Appends the messages of retained values to the journal, in the order of arrival. Each retained value is then stored
 * as a position.
 */
async function takeRetained(store: Store, portions: Portions, count: () => void): Promise<void> {
  const bodies = new Map<string, Buffer>()
  for await (const [key, payload] of store.range(sharedPrefix))
    bodies.set(key.slice(sharedPrefix.length), payload)
  const values: Retained[] = []
  for await (const [key, value] of store.range(retainedPrefix)) {
    const read = readRetained(value)
    if (read) values.push({ key, ...read })
  }
  values.sort((a, b) => (a.header.arrival ?? 0) - (b.header.arrival ?? 0))
  /** Values that share a payload are converted together. */
  const groups = new Map<string, Retained[]>()
  for (const value of values) {
    const name = value.header.body ?? value.key
    groups.set(name, [...(groups.get(name) ?? []), value])
  }
  for (const [name, group] of groups) {
    const arrival = group[0]?.header.arrival
    const at = arrival === undefined ? Date.now() : sequenceTime(arrival)
    const messages = group.flatMap(({ header, payload }) => {
      const whole = header.body === undefined ? payload : bodies.get(header.body)
      return whole ? [retainedMessage(header, whole)] : []
    })
    // Values without a payload: no client could get them from the former hub.
    const lost = messages.length === 0 ? group.map(({ key }) => ({ del: key })) : []
    const shared = bodies.has(name) ? [{ del: sharedPrefix + name }] : []
    const kept = messages.flatMap((message, nth) => retainedChange(message, nth))
    await portions.add([...appendChanges(messages, at), ...kept, ...lost, ...shared])
    for (const _ of messages) count()
  }
  await portions.flush()
}

/** The change that stores a retained value as `journal/retained-values.ts` does. */
function retainedChange({ topic, retained }: Message, nth: number): Change[] {
  if (!retained) return []
  const put = `${retainedPrefix}${topic}\n${JSON.stringify(retained.slot)}`
  const order = { time: retained.time, horizon: Infinity }
  return [{ put, value: '', order, numbered: { nth, at: 'value' } }]
}

/** Converts the sessions. A session gets its unacknowledged messages, and all that is appended from now on. */
async function takeSessions(store: Store, portions: Portions, count: () => void): Promise<void> {
  const positions = new Map<number, number>()
  for await (const [key, value] of store.range(takenPrefix)) {
    positions.set(Number(key.slice(takenPrefix.length)), Number(value.toString()))
  }
  const head = await store.lastNumber()
  for await (const [, value] of store.range(recordPrefix)) {
    const former = readFormerRecord(value)
    if (!former) continue
    const { keys, owed } = await readQueue(store, former, positions)
    const record = {
      ...former,
      subscriptions: former.subscriptions.map(([filter, qos]): [typeof filter, typeof qos, number] => [
        filter,
        qos,
        0,
      ]),
      upTo: former.clean ? 0 : head,
      owed: owed.map(toStored),
      dropped: 0,
    }
    const changes = recordChanges(record, former.version, store.isShared)
    await portions.add([...changes, ...keys.map((del) => ({ del }))])
    count()
  }
  await portions.flush()
}

/** Reads the unacknowledged messages of a session. Packet identifiers are left out: they now come from positions. */
async function readQueue(
  store: Store,
  { clientId, clean, createdAt }: FormerRecord,
  positions: ReadonlyMap<number, number>,
): Promise<{ keys: string[]; owed: Owed[] }> {
  const keys: string[] = []
  const owed: Owed[] = []
  for await (const [key, value] of store.range(`${queuePrefix}${encodeURIComponent(clientId)}/`)) {
    keys.push(key)
    const { sequence, session, qos, retain, packetId, released } = readQueueEntry(value)
    const position = positions.get(sequence)
    const isOwn = !clean && (session === undefined || session === createdAt)
    // The client already has this message if it is released.
    if (!isOwn || position === undefined || released) continue
    // At QoS 2, DUP would need the former packet identifier, which is lost.
    owed.push({ position, qos, retain, dup: packetId !== undefined && qos === 1 })
  }
  return { keys, owed }
}

function takenKey(sequence: number): string {
  return takenPrefix + padded(sequence)
}
