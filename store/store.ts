/**
 * The store contract: an ordered key-value space with atomic, durable commits.
 *
 * Keys are paths (`retained/…`, `credential/…`). A collection is the range of all keys below one prefix.
 * Two drivers implement the contract and pass the same suite (`test/store/suite.ts`).
 */
export interface Store {
  /** Name of the driver, as `hubctl status` shows it. */
  readonly driver: 'embedded' | 'redis'
  /** The value stored under `key`, or undefined. */
  get(key: string): Promise<Buffer | undefined>
  /**
   * All entries whose key starts with `prefix` (which ends in `/`) and lies within `bounds`, in key order.
   * A shared store is read page by page. A page may already show changes that other nodes have made since the call;
   * `follow` reports these changes too.
   */
  range(prefix: string, bounds?: Bounds): AsyncIterable<[key: string, value: Buffer]>
  /**
   * The last entries whose key starts with `prefix`, in reverse key order. With `before`, only keys before
   * `prefix + before`. Returns at most `count` entries. Returns fewer if the entries are large, but at least one if
   * there is any.
   */
  last(prefix: string, count: number, before?: string): Promise<[key: string, value: Buffer][]>
  /**
   * Applies all changes or none. Once the promise resolves, the changes survive `kill -9` and power loss. Commits take
   * effect in the order of the calls, and resolve in that order. Resolves with the first number that the commit took,
   * or 0 if it took none (`Numbered`). Rejects
   * - with `ConditionFailed` if a condition of the commit does not hold. The commit has changed nothing. `onOthers` has
   *   already reported all earlier commits of other nodes.
   * - with `Fenced`, without waiting for such reports, if this node is no longer a member (`SharedStore.enter`). The
   *   commit has changed nothing.
   * - with `OutcomeUnknown` if the store on another machine did not answer. The store may have applied the commit, or
   *   may still apply it.
   * - with the error of the driver in all other cases. If a disk has failed, the failed commit may be on the disk all
   *   the same. When the next commit comes, the embedded driver first undoes the failed one. If the process ends
   *   earlier, the failed commit may have taken effect at the next start.
   *
   * `underway` lets the caller begin work that need not wait for the disk. A driver that expects the commit to succeed
   * may call `underway` with the first number when it begins to store the changes. It calls `underway` at most once,
   * before the commit resolves, in the order of the commits, and perhaps before `commit` returns.
   */
  commit(changes: readonly Change[], underway?: (first: number) => void): Promise<number>
  /** The highest number that a commit has taken so far, or 0 if none has taken any (`Numbered`). */
  lastNumber(): Promise<number>
  /** Whether other nodes may use the same store. */
  readonly isShared: boolean
  /**
   * Calls `listener` with changes that other nodes have committed, in commit order. `place` selects the changes. If it
   * is a prefix (`retained/`), it selects the changes of all keys below the prefix. If it is the name of a channel, it
   * selects each `tell` on that channel.
   * Never calls `listener` if no other node uses the store.
   */
  readonly onOthers: (place: string, listener: (change: Told) => void) => void
  /** Finishes pending commits and releases the files or connections. */
  close(): Promise<void>
}

/**
 * Limits of a range. A caller that knows the end should set `before` or `most`: the driver reads ahead of the caller,
 * and would otherwise read entries that nobody needs.
 */
export interface Bounds {
  /** Only entries whose key is not before `prefix + from`. */
  from?: string | undefined
  /** Only entries whose key is before `prefix + before`. */
  before?: string | undefined
  /** Only the first entries, at most this many. */
  most?: number | undefined
}

/** A key and its stored entry: a value, perhaps with an event time. A record can also say that there is no entry. */
export interface StoredRecord {
  key: string
  /** Undefined if there is no entry under the key. */
  value: Buffer | undefined
  /** Event time of the entry (`Order`), milliseconds since the epoch. */
  time?: number | undefined
}

/** A store that can be copied, for exports. The stores of both drivers can. */
export interface Dumpable {
  /**
   * Yields the records of all keys, page by page, including keys that are no paths. A program that applies the records
   * in this order gets the store as it was at one moment, no earlier than the call. If a commit changes a key during
   * the dump, the key may appear several times: its last record counts. Rejects if the nodes commit so much during the
   * dump that the log of changes no longer has all of it.
   */
  dump(): AsyncIterable<readonly StoredRecord[]>
}

/** A store that several nodes use. */
export type SharedStore = Store & {
  /** See `Follow`. `nodes/followed-store.ts` calls it once, and hands the changes to all listeners of `onOthers`. */
  readonly follow: Follow
  /**
   * Makes this node a member: commits `changes`, which store `membership.value` under `membership.key`. All later
   * commits of this node are fenced: they apply only while the key still has this value. Every membership needs a value
   * that no earlier one had. Commits before the first `enter` are not fenced.
   * After a `Fenced`, or after a further call of `enter`, the driver refuses all commits, including waiting ones, until
   * `enter` resolves. By then this node has received all earlier commits of the other nodes.
   */
  readonly enter: (changes: readonly Change[], membership: { key: string; value: string }) => Promise<void>
  /** Resolves when this node has received all commits before the call. Rejects if Redis does not answer in time. */
  readonly catchUp: () => Promise<void>
}

/**
 * Calls `listener` with every commit that other nodes have made since this store was opened, in commit order, each
 * exactly once. A caller that first loads a range and then follows therefore misses no change. One call of `listener`
 * has the changes of one or more whole commits.
 *
 * After the call of `follow`, a commit of this node resolves only when `listener` has received all earlier commits of
 * other nodes. `listener` receives later commits in a later turn of the event loop. If Redis applies a commit of this
 * node but does not answer in time, the commit rejects, and `listener` receives it like a commit of another node. So a
 * caller that applies its own successful commits and all received commits to its memory has the same content as the
 * store.
 *
 * The driver calls `onGap` when `listener` cannot receive all commits: the node was away for longer than the log of
 * changes reaches back, Redis lost data, or `listener` threw. The node must then load everything again. `listener`
 * receives the commits after the gap as before. Call `follow` once per store; following ends when the store is closed.
 */
export type Follow = (listener: (changes: readonly Told[]) => void, onGap: (reason: Error) => void) => void

/**
 * One change of a commit. A `tell` stores nothing: it sends `value` to the other nodes on a channel, whose name is in
 * `tell`. The embedded driver ignores a `tell`, because it has no other nodes.
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
 * Gives a `put` a number. The driver writes the number as 16 digits behind the key, before the value, or both. All
 * nodes take numbers from one counter. Numbers rise in the order in which commits take effect, also across restarts.
 * Some numbers may be missing. A `put` with a numbered key must not have `order` or `when`.
 */
export interface Numbered {
  /** Which of the commit's numbers this `put` gets, from 0 on. If the highest `nth` is 2, the commit takes 3 numbers. */
  nth: number
  at: 'key' | 'value' | 'both'
}

/**
 * A condition of a commit. The driver checks the condition after all earlier commits have taken effect, and before any
 * change of the same commit does. If one condition does not hold, the whole commit changes nothing.
 */
export type Condition =
  | 'absent'
  | 'present'
  /** The stored value equals this value, byte for byte. */
  | { value: Buffer | string }
  /** The stored entry has this event time (`order`). */
  | { time: number }
  /** There is no entry, or the entry has no event time, or its event time is not later than this. */
  | { notNewerThan: number }

/** A condition of a commit did not hold: the commit changed nothing. */
export class ConditionFailed extends Error {
  override name = 'ConditionFailed'
  /** `key`: the key whose condition failed; if several conditions failed, the key of the first of them. */
  constructor(readonly key: string) {
    super(`not committed: ${key} is not as expected`)
  }
}

/** This node is no longer a member: other nodes may have taken over its sessions. The commit changed nothing. */
export class Fenced extends Error {
  override name = 'Fenced'
  constructor() {
    super('not committed: the other nodes took this one for dead')
  }
}

/** The store did not answer: it may have applied the commit, or may still apply it. */
export class OutcomeUnknown extends Error {
  override name = 'OutcomeUnknown'
}

/** A change of another node, reported after it took effect. */
export type Told = { put: string; value: Buffer } | { del: string } | { tell: string; value: Buffer }

/**
 * The last write wins by *event time*, not by arrival (service.md §6.3): a `put` or `del` with an order leaves a stored
 * entry alone if the event time of that entry is later than `time`. An event time later than `horizon` does not count:
 * it comes from a clock that is far ahead, and must not block newer arrivals (design.md §7).
 */
export interface Order {
  /** Event time of the change, milliseconds since the epoch. */
  time: number
  /** If a stored entry has a later event time than this, the change replaces it; milliseconds since the epoch. */
  horizon: number
}
