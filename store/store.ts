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
  /** All entries whose key starts with `prefix` (which ends in `/`), in key order. */
  range(prefix: string): AsyncIterable<[key: string, value: Buffer]>
  /**
   * Applies all changes or none. When it resolves they survive `kill -9` and power loss.
   * Commits take effect in the order of the calls, and resolve in that order.
   * Rejects with the driver's error; then nothing of this commit is to be relied on.
   */
  commit(changes: readonly Change[]): Promise<void>
  /** Finishes pending commits and releases the files or connections. */
  close(): Promise<void>
}

/** One change of a commit. */
export type Change = { put: string; value: Buffer | string; order?: Order } | { del: string; order?: Order }

/**
 * Last write wins by *event time*, not by arrival (service.md §6.3): the stored entry stays when its
 * order is greater than `time`, unless it lies beyond `horizon` (a clock far ahead must not block
 * newer arrivals, design.md §7). A `del` with an order leaves a newer entry alone in the same way.
 */
export interface Order {
  /** Event time of the change, milliseconds since the epoch. */
  time: number
  /** Newest event time that may defend itself, milliseconds since the epoch. */
  horizon: number
}

/** Whether an entry of order `stored` stays when a change of order `incoming` arrives. */
export function keepsStored(stored: number, incoming: Order): boolean {
  return stored > incoming.time && stored <= incoming.horizon
}
