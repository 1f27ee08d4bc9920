/**
 * The store contract: an ordered key-value space with atomic, durable commits.
 *
 * Keys are paths (`retained/…`, `credential/…`); every collection is the range below one prefix.
 * Two drivers implement it and pass the same suite (`test/store/suite.ts`).
 */
export interface Store {
  /** Name of the driver, as `hubctl status` shows it. */
  readonly driver: 'embedded' | 'redis'
  /** The value stored under `key`, or undefined. */
  get(key: string): Promise<Buffer | undefined>
  /**
   * All entries whose key starts with `prefix` (which ends in `/`) and lies within `bounds`, in key order.
   * While other nodes write, a long range may already show some of their changes. `follow` then reports these changes
   * again.
   */
  range(prefix: string, bounds?: Bounds): AsyncIterable<[key: string, value: Buffer]>
  /**
   * The last entries whose key starts with `prefix`, in reverse key order. With `before`, only keys before
   * `prefix + before`. At most `count` entries. If they are large perhaps fewer, but at least one if there is any.
   */
  last(prefix: string, count: number, before?: string): Promise<[key: string, value: Buffer][]>
  /**
   * Applies all changes or none. When it resolves they survive `kill -9` and power loss.
   * Commits take effect in the order of the calls, and resolve in that order.
   * Resolves with the first number that the commit took, 0 where it took none (`Numbered`).
   * Rejects with `ConditionFailed` when one of its conditions does not hold. The commit changed nothing, and `onOthers`
   * has reported everything that other nodes committed before. Rejects with `Fenced`, at once, when the membership of
   * this node is gone. The commit changed nothing. Rejects with the driver's error in all other cases. The outcome is
   * then unknown: a store on another machine that did not answer may have applied the commit, or may still do so.
   *
   * A driver that expects no failure may call `underway` with the first number when it begins to store the changes. It
   * does so once, before the commit resolves, perhaps before `commit` returns, and in the order of the calls. The
   * caller then does the work that need not wait for the disk.
   */
  commit(changes: readonly Change[], underway?: (first: number) => void): Promise<number>
  /** The highest number that was taken so far, 0 where none was. */
  lastNumber(): Promise<number>
  /** Whether other nodes may use the store as well. */
  readonly isShared: boolean
  /**
   * Calls back with every change of other nodes below a prefix (`retained/`), or every `tell` on a channel, in commit
   * order. Never calls back if no other node uses the store.
   */
  readonly onOthers: (place: string, listener: (change: Told) => void) => void
  /** Finishes pending commits and releases the files or connections. */
  close(): Promise<void>
}

/** Limits of a range. A caller that knows the end should name it, because a range is read some entries ahead. */
export interface Bounds {
  /** Only entries whose key is not before `prefix + from`. */
  from?: string | undefined
  /** Only entries whose key is before `prefix + before`. */
  before?: string | undefined
  /** At most this many entries, the first ones. */
  most?: number | undefined
}

/** What is stored under a key: a value, perhaps with an event time, or nothing. */
export interface StoredRecord {
  key: string
  /** Undefined: there is no entry. */
  value: Buffer | undefined
  /** Event time of the entry (`Order`), milliseconds since the epoch. */
  time?: number | undefined
}

/** A further ability of the drivers: a copy of the store. */
export interface Dumpable {
  /**
   * Yields everything that is stored, page by page, also keys that are no paths. Applied in their order, the records
   * restore the store as it was at one moment, no earlier than the call. Commits made meanwhile may make a key appear
   * several times: its last record counts. Rejects if so much was committed meanwhile that the log has lost some of it.
   */
  dump(): AsyncIterable<readonly StoredRecord[]>
}

/** A store that other nodes write to as well. */
export type SharedStore = Store & {
  /** See `Follow`. `nodes/followed-store.ts` calls it once, and hands the changes to all listeners of `onOthers`. */
  readonly follow: Follow
  /**
   * Commits `changes`, and fences all later commits of this node: they apply only while the key of `membership` has its
   * value. No earlier membership may have had that value. Before the first `enter` all commits apply.
   * After a commit was rejected with `Fenced`, or when `enter` is called again, the driver refuses all commits, waiting
   * ones as well, until `enter` has resolved. By then this node has received all commits of the other nodes before it.
   */
  readonly enter: (changes: readonly Change[], membership: { key: string; value: string }) => Promise<void>
  /** Resolves when this node has received all commits made before the call. Rejects if no answer comes in time. */
  readonly catchUp: () => Promise<void>
}

/**
 * Calls `listener` with the commits of other nodes: all since this store was opened, in commit order, exactly
 * once. One call has the changes of one or more whole commits. A caller that loads a range and then follows
 * misses nothing.
 *
 * From then on, a commit of this node resolves after `listener` has received the earlier commits of other nodes.
 * The later commits follow in a later turn of the event loop. A commit of this node that was rejected for want of
 * an answer, but was applied, is reported like a commit of another node. So memory that changes with both kinds
 * of commits ends up equal to the store.
 *
 * `onGap` is called when `listener` cannot receive all commits: the node was away for longer than the log of changes
 * reaches back, Redis lost data, or `listener` threw. Everything must then be loaded again. Commits after the
 * call are reported as before. A store is followed once, until it is closed.
 */
export type Follow = (listener: (changes: readonly Told[]) => void, onGap: (reason: Error) => void) => void

/**
 * One change of a commit. `tell` stores nothing: it sends a value to the other nodes, on the channel that it names.
 * A driver without other nodes leaves it out.
 */
export type Change = StateChange | { tell: string; value: Buffer | string }

export type StateChange =
  | ({ put: string; value: Buffer | string; order?: Order | undefined; numbered?: Numbered } & Conditional)
  | ({ del: string; order?: Order | undefined } & Conditional)
  /** No change, only a condition. */
  | { check: string; when: Condition }

export type ConditionalChange = StateChange & { when: Condition }

interface Conditional {
  when?: Condition | undefined
  /** Only another node can break the condition, so a driver without other nodes does not check it. */
  onlyOthers?: true
}

/**
 * The number of a change: 16 digits behind its key, before its value, or both. All nodes take numbers from one counter.
 * The numbers rise in the order in which commits take effect, and never fall after a restart. Some may be missing.
 * `order` and `when` are allowed if only the value is numbered.
 */
export interface Numbered {
  /** Which number of the commit, from 0. The commit takes one more number than its highest `nth`. */
  nth: number
  at: 'key' | 'value' | 'both'
}

/**
 * A condition for a commit to apply. It is checked against the entries as earlier commits left them, before any change of
 * its own commit. If one condition does not hold, the whole commit changes nothing.
 */
export type Condition =
  | 'absent'
  | 'present'
  /** The stored value is this, byte for byte. */
  | { value: Buffer | string }
  /** The stored entry has this event time (`order`). */
  | { time: number }
  /** There is no entry, or its event time is missing or not newer than this. */
  | { notNewerThan: number }

/** Whether `condition` holds for the stored entry, if there is one. */
export function holds(
  condition: Condition,
  stored: { value: Buffer; time: number | undefined } | undefined,
): boolean {
  if (condition === 'absent') return stored === undefined
  if (condition === 'present') return stored !== undefined
  if ('value' in condition) return stored?.value.equals(Buffer.from(condition.value)) ?? false
  if ('time' in condition) return stored?.time === condition.time
  return stored?.time === undefined || stored.time <= condition.notNewerThan
}

/** A condition of a commit did not hold: the commit changed nothing. */
export class ConditionFailed extends Error {
  override name = 'ConditionFailed'
  /** `key`: the key of the first condition of the commit that failed. */
  constructor(readonly key: string) {
    super(`not committed: ${key} is not as expected`)
  }
}

/** The membership of this node is gone: others may have taken over what it held. The commit changed nothing. */
export class Fenced extends Error {
  override name = 'Fenced'
  constructor() {
    super('not committed: the other nodes took this one for dead')
  }
}

/** Whether a change has a condition. */
export function isConditional(change: Change): change is ConditionalChange {
  return 'when' in change && change.when !== undefined
}

/** The key of a change; '' for a `tell`. */
export function keyOf(change: Change | Told): string {
  if ('put' in change) return change.put
  if ('check' in change) return change.check
  return 'del' in change ? change.del : ''
}

/** Digits of a number in keys and values. */
export const digits = 16

/** A number as it stands in keys and values: padded, so that keys sort as numbers. */
export function digitsOf(number: number): string {
  return String(number).padStart(digits, '0')
}

/** How many numbers a commit takes. */
export function numbersTaken(changes: readonly Change[]): number {
  let taken = 0
  for (const change of changes) {
    if ('numbered' in change && change.numbered) taken = Math.max(taken, change.numbered.nth + 1)
  }
  return taken
}

/** The changes of a commit with their numbers in keys and values; `first` is 0 if the commit takes none. */
export function withNumbers(changes: readonly Change[], first: number): readonly Change[] {
  return first === 0 ? changes : changes.map((change) => withNumber(change, first))
}

/** The change with its number in key and value, where it has one. */
export function withNumber(change: Change, first: number): Change {
  if (!('numbered' in change) || !change.numbered) return change
  const { nth, at } = change.numbered
  const number = digitsOf(first + nth)
  const put = at === 'value' ? change.put : change.put + number
  const value = at === 'key' ? change.value : prefixed(number, change.value)
  return { put, value, order: change.order, when: change.when, numbered: change.numbered }
}

function prefixed(number: string, value: Buffer | string): Buffer | string {
  return typeof value === 'string' ? number + value : Buffer.concat([Buffer.from(number), value])
}

/** A change of another node that took effect. */
export type Told = { put: string; value: Buffer } | { del: string } | { tell: string; value: Buffer }

/**
 * Last write wins by *event time*, not by arrival (service.md §6.3): the stored entry stays when its event
 * time is greater than `time`, unless that time lies beyond `horizon` (a clock far ahead must not block
 * newer arrivals, design.md §7). A `del` with an order leaves a newer entry alone in the same way.
 */
export interface Order {
  /** Event time of the change, milliseconds since the epoch. */
  time: number
  /** A stored entry with an event time above this is replaced in any case; milliseconds since the epoch. */
  horizon: number
}

/** Whether an entry with the event time `stored` stays when a change of order `incoming` arrives. */
export function keepsStored(stored: number, incoming: Order): boolean {
  return stored > incoming.time && stored <= incoming.horizon
}
