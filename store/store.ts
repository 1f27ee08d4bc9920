/**
 * The store contract: an ordered key-value space with atomic, durable commits.
 *
 * Keys are paths, such as `credential/…`. Both drivers pass the same suite (`test/store/suite.ts`).
 */
export interface Store {
  /** Name of the driver, as `hubctl status` shows it. */
  readonly driver: 'embedded' | 'redis'
  /** The value stored under `key`, or undefined. */
  get(key: string): Promise<Buffer | undefined>
  /**
   * All entries whose key starts with `prefix` (which ends in `/`), in key order. A shared store may already show
   * changes that other nodes made after the call. `follow` reports these changes too.
   */
  range(prefix: string, bounds?: Bounds): AsyncIterable<[key: string, value: Buffer]>
  /**
   * The last entries below `prefix`, in reverse key order. With `before`, only keys before `prefix + before`. Returns
   * at most `count` entries. If the entries are large, returns fewer, but at least one.
   */
  last(prefix: string, count: number, before?: string): Promise<[key: string, value: Buffer][]>
  /**
   * Applies all changes or none. After the promise resolves, the changes survive `kill -9` and power loss. On Redis,
   * its settings decide about power loss. Commits take effect and resolve in the order of the calls. Resolves with the
   * first number that the commit took, or 0 if none (`Numbered`). Rejects
   * - with `ConditionFailed` if a condition does not hold. The commit has changed nothing. `onOthers` has reported all
   *   earlier commits of other nodes.
   * - with `Fenced` if this node is no longer a member (`SharedStore.enter`). The commit has changed nothing.
   *   `onOthers` may not have reported all earlier commits yet.
   * - with `OutcomeUnknown` if the store is on another machine and did not answer. The commit may have taken effect, or
   *   may still take effect.
   * - with the error of the driver in all other cases. If a disk has failed, the rejected commit may be on the disk.
   *   The embedded driver undoes this commit before it writes another one. If the process ends before that, the commit
   *   may take effect at the next start.
   *
   * `underway` lets the caller begin work that need not wait for the disk. The driver may call `underway` with the
   * first number as soon as nothing but the disk can make the commit fail, or later. It does so at most once, in the order of the
   * commits, before the commit resolves. This call may even come before `commit` returns, and before earlier commits
   * are stored. The commit may still fail afterwards.
   */
  commit(changes: readonly Change[], underway?: (first: number) => void): Promise<number>
  /** The highest number that a commit has taken, or 0 (`Numbered`). */
  lastNumber(): Promise<number>
  /** Whether other nodes may use the same store. */
  readonly isShared: boolean
  /**
   * Calls `listener` with each entry below `prefix` (such as `retained/`) that other nodes have stored, in commit order.
   * Without a value, they have removed it.
   */
  readonly onOthers: (prefix: string, listener: (key: string, value: Buffer | undefined) => void) => void
  /** Calls `listener` with what other nodes tell on a channel (`Change`), in the same order. */
  readonly onTold: (channel: string, listener: (value: Buffer) => void) => void
  /** Resolves when this node has received all commits before the call. Rejects if Redis does not answer in time. */
  readonly catchUp: () => Promise<void>
  /** Finishes pending commits and releases the files or connections. */
  close(): Promise<void>
}

/** Limits of a range. The driver reads ahead: set `before` or `most` to avoid unneeded reads. */
export interface Bounds {
  /** Only entries whose key is not before `prefix + from`. */
  from?: string | undefined
  /** Only entries whose key is before `prefix + before`. */
  before?: string | undefined
  /** Only the first entries, at most this many. */
  most?: number | undefined
}

/** A key and its entry, if there is one. */
export interface StoredRecord {
  key: string
  /** Undefined if there is no entry under the key. */
  value: Buffer | undefined
  /** Event time of the entry (`Order`), milliseconds since the epoch. */
  time?: number | undefined
}

/** A store as its driver opens it: it can be copied, for exports. */
export interface Dumpable {
  /** Whether 3.0.0-beta.1 has left a store beside this one. It had other keys in Redis. */
  hasFormer(): Promise<boolean>
  /**
   * Yields the records of all keys, including keys that are no paths. Applying the records in this order gives the
   * store of one moment, no earlier than the call. A key may appear several times: its last record counts. Rejects if
   * the log of changes is too short for the commits during the dump.
   */
  dump(): AsyncIterable<readonly StoredRecord[]>
}

/** A store that several nodes use. */
export type SharedStore = Store & {
  /** Called once, by `nodes/followed-store.ts`, for all listeners of `onOthers` and `onTold`. */
  readonly follow: Follow
  /**
   * Makes this node a member: commits `changes`, which must store `membership.value` under `membership.key`. All later
   * commits of this node are fenced: they apply only while the key has this value. Each membership needs a new value.
   *
   * After a `Fenced`, or when `enter` is called again, the driver refuses all other commits until `enter` resolves.
   * When `enter` resolves, this node has received all earlier commits of other nodes.
   */
  readonly enter: (changes: readonly Change[], membership: { key: string; value: string }) => Promise<void>
}

/**
 * Calls `listener` with the commits that other nodes have made since this store was opened. `listener` gets each commit
 * exactly once, in commit order. One call has the changes of one or more whole commits.
 *
 * All earlier commits of other nodes reach `listener` before a commit of this node resolves. Later commits of other
 * nodes reach `listener` in a later turn of the event loop.
 *
 * Redis may apply a commit of this node but answer too late. The commit then rejects, and `listener` receives it as if
 * another node had made it. A caller that applies its successful commits and all received ones has the store's content.
 *
 * The driver calls `onGap` when `listener` has missed commits: the log of changes was too short, Redis lost data, or
 * `listener` threw. The node must then load everything again. `listener` still receives the commits after the gap. Call
 * `follow` once per store.
 *
 * While `isUrgent` returns false, the driver may call `listener` up to 100 ms later, with several commits at once. By
 * default it never does.
 */
export type Follow = (
  listener: (changes: readonly Told[]) => void,
  onGap: (reason: Error) => void,
  isUrgent?: () => boolean,
) => void

/**
 * One change of a commit. A `tell` stores nothing: it sends `value` to the other nodes, on the channel that it names.
 */
export type Change = StateChange | { tell: string; value: Buffer | string }

export type StateChange =
  | ({ put: string; value: Buffer | string; order?: Order | undefined; numbered?: Numbered } & Conditional &
      Quiet)
  | ({ del: string; order?: Order | undefined } & Conditional & Quiet)
  /** No change, only a condition. */
  | { check: string; when: Condition; onlyOthers?: true }

export type ConditionalChange = StateChange & { when: Condition }

/**
 * Other nodes do not receive a quiet change, and nobody does whose commit seemed to fail (`OutcomeUnknown`). A dump may
 * lack it, unless its commit has other changes too.
 */
interface Quiet {
  isQuiet?: true | undefined
}

interface Conditional {
  when?: Condition | undefined
  /** Only other nodes can break the condition. The embedded driver therefore skips the check. */
  onlyOthers?: true
}

/**
 * Gives a `put` a number: 16 digits behind the key, before the value, or both. The numbers of all nodes rise in commit
 * order, also across restarts. Some may be missing. A `put` with a numbered key must not have `order` or `when`.
 */
export interface Numbered {
  /** Which number of the commit this `put` gets, from 0 on. With a highest `nth` of 2, the commit takes 3 numbers. */
  nth: number
  at: 'key' | 'value' | 'both'
}

/**
 * The driver checks a condition after all earlier commits, and before the changes of the same commit. If one condition
 * does not hold, the whole commit changes nothing.
 */
export type Condition =
  | 'absent'
  | 'present'
  /** The stored value equals this value, byte for byte. */
  | { value: Buffer | string }
  /** The stored entry has this event time (`order`). */
  | { time: number }
  /** No entry, no event time, or an event time that is not later than this. */
  | { notNewerThan: number }

/** A condition of a commit did not hold: the commit changed nothing. */
export class ConditionFailed extends Error {
  override name = 'ConditionFailed'
  /** `key`: the first key whose condition failed. */
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
 * The last write wins by *event time* (service.md §6.3). A stored entry with a later event time than `time` stays. But
 * if its event time is later than `horizon`, the stored entry is replaced. Otherwise a clock far ahead would block
 * newer arrivals (design.md §7).
 */
export interface Order {
  /** Event time of the change, milliseconds since the epoch. */
  time: number
  /** A stored entry with a later event time than this is replaced; milliseconds since the epoch. */
  horizon: number
}
