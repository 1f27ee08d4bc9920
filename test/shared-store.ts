import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Test } from 'tap'
import { holds, isConditional, keepsStored, keyOf, numbersTaken, withNumber } from '../store/commit.ts'
import { type FollowedStore, withListeners } from '../store/nodes/followed-store.ts'
import {
  type Change,
  ConditionFailed,
  Fenced,
  type SharedStore,
  type StateChange,
  type Told,
} from '../store/store.ts'
import { keysBelow } from '../store/stored-value.ts'

export type SharedSpace = ReturnType<typeof createSharedSpace>

export type TestStore = FollowedStore & Reach & { start(): void }

/** Faults between a node and its store, which a test can cause. */
export interface Reach {
  /**
   * The node loses its connection: all its commits reject, also those under way, and no changes of others arrive.
   * `lost`: the store drops the rejected commits. `applied`: the store applies them all the same.
   */
  cut(fate?: 'lost' | 'applied'): void
  /** The store applies the commits of this node, but the node receives no answers and no changes of others. */
  lag(): void
  /** Ends `cut` and `lag`. The node then receives everything that it has missed. */
  restore(): void
}

/** Resolves when each of these nodes has received all commits made before the call. */
export async function settled(...stores: Pick<SharedStore, 'catchUp' | 'commit'>[]): Promise<void> {
  for (const store of stores) {
    // This commit resolves after all earlier commits of the node. A fenced node gets a rejection.
    await store.commit([{ tell: 'heard', value: '' }]).catch(() => undefined)
    await store.catchUp()
  }
}

interface Commit {
  changes: readonly Change[]
  membership?: Membership | undefined
  resolve(first: number): void
  reject(error: Error): void
}

interface Membership {
  key: string
  value: string
}

interface Entry {
  /**
   * The node that made the commit. Undefined: the node gave the commit up. It then receives the changes like those of
   * other nodes.
   */
  writer: symbol | undefined
  told: readonly Told[]
  resolve: () => void
}

/**
 * Stands in for Redis: a store in memory that several nodes share. Each node receives all commits in one order, at its
 * own pace (`Follow`).
 */
export function createSharedSpace() {
  const values = new Map<string, { value: Buffer; time: number | undefined }>()
  const log: Entry[] = []
  const readers = new Set<() => void>()
  let lastNumber = 0

  return { open, openFollowed }

  /** Opens the store of a node. Call `start` when the node has loaded everything. */
  function openFollowed(t: Test): TestStore {
    const store = open()
    t.teardown(() => store.close())
    return {
      ...store,
      start: () => store.startFollowing((reason) => t.error(reason)),
    }
  }

  function open(): FollowedStore & Reach {
    const writer = Symbol('node')
    const waiting: Commit[] = []
    const unanswered = new Set<(error: Error) => void>()
    let position = log.length
    let listener: ((changes: readonly Told[]) => void) | undefined
    let onGap = (_reason: Error) => {}
    let applying: Promise<void> | undefined
    let reading: Promise<void> | undefined
    let isClosed = false
    let fence: Membership | undefined
    let isFenced = false
    let reach: 'whole' | 'lost' | 'applied' = 'whole'
    let isLagging = false
    const wake = () => {
      if (listener && reach === 'whole' && !isLagging) reading ??= read()
    }

    return withListeners({
      driver: 'redis' as const,
      isShared: true,

      async get(key) {
        refuseWhenGone()
        await nextTurn()
        refuseWhenGone()
        return values.get(key)?.value
      },

      async lastNumber() {
        refuseWhenGone()
        await nextTurn()
        refuseWhenGone()
        return lastNumber
      },

      async *range(prefix, bounds = {}) {
        refuseWhenGone()
        await nextTurn()
        const { gte, lt } = keysBelow(prefix, bounds)
        const inside = [...values].filter(([key]) => key >= gte && key < lt)
        inside.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        for (const [key, { value }] of inside.slice(0, bounds.most)) yield [key, value]
      },

      async last(prefix, count, before) {
        const found: [string, Buffer][] = []
        for await (const entry of this.range(prefix)) {
          if (before === undefined || entry[0] < prefix + before) found.push(entry)
        }
        return found.reverse().slice(0, count)
      },

      commit(changes) {
        if (isClosed) return Promise.reject(new Error('the store is closed'))
        if (isFenced) return Promise.reject(new Fenced())
        return add(changes)
      },

      async enter(changes, membership) {
        if (fence) refuseAll()
        await add(changes, membership)
        isFenced = false
      },

      async catchUp() {
        refuseWhenGone()
        const end = log.length
        while (position < end) {
          await nextTurn()
          refuseWhenGone()
        }
      },

      follow(toListener, toGap) {
        if (listener || isClosed) throw new Error('the store is followed already, or closed')
        listener = toListener
        onGap = toGap
        readers.add(wake)
        wake()
      },

      async close() {
        if (isClosed) return
        isClosed = true
        await applying
        await reading
        readers.delete(wake)
      },

      cut(fate = 'lost') {
        reach = fate
        if (fate === 'lost') waiting.length = 0
        for (const reject of unanswered) reject(new Error('the store did not answer'))
        unanswered.clear()
      },

      lag() {
        isLagging = true
      },

      restore() {
        reach = 'whole'
        isLagging = false
        wake()
      },
    } satisfies Omit<SharedStore, 'onOthers' | 'onTold'> & Reach)

    async function applyWaiting(): Promise<void> {
      await nextTurn()
      for (let commit = waiting.shift(); commit; commit = waiting.shift()) apply(commit)
      applying = waiting.length > 0 ? applyWaiting() : undefined
      await applying
    }

    function add(changes: readonly Change[], membership?: Membership): Promise<number> {
      if (reach === 'applied') apply({ changes, membership, resolve() {}, reject() {} }, true)
      if (reach !== 'whole') return Promise.reject(new Error('the store did not answer'))
      if (changes.length === 0) return Promise.resolve(0)
      return new Promise((resolve, reject) => {
        unanswered.add(reject)
        const answered = () => unanswered.delete(reject)
        waiting.push({
          changes,
          membership,
          resolve: (first) => answered() && resolve(first),
          reject: (error) => answered() && reject(error),
        })
        applying ??= applyWaiting()
      })
    }

    function apply({ changes, membership, resolve, reject }: Commit, isGivenUp = false): void {
      if (!membership && fence && values.get(fence.key)?.value.toString() !== fence.value) {
        reject(new Fenced())
        refuseAll()
        return
      }
      const broken = changes
        .filter(isConditional)
        .find((change) => !holds(change.when, values.get(keyOf(change))))
      if (membership && !broken) fence = membership
      const taken = broken ? 0 : numbersTaken(changes)
      const first = taken === 0 ? 0 : lastNumber + 1
      lastNumber += taken
      const told = broken
        ? []
        : changes.map((change) => withNumber(change, first)).flatMap((change) => effectOf(change))
      const settle = broken ? () => reject(new ConditionFailed(keyOf(broken))) : () => resolve(first)
      if (!listener) settle()
      log.push({ writer: isGivenUp ? undefined : writer, told, resolve: listener ? settle : () => {} })
      for (const reader of readers) reader()
    }

    function refuseAll(): void {
      isFenced = true
      for (const commit of waiting.splice(0)) {
        if (commit.membership) waiting.push(commit)
        else commit.reject(new Fenced())
      }
    }

    async function read(): Promise<void> {
      await nextTurn()
      for (let entry = log[position]; entry; entry = log[position]) {
        if (reach !== 'whole' || isLagging) break
        position++
        if (entry.writer !== writer) {
          if (entry.told.length > 0 && !isClosed) tell(entry.told)
          continue
        }
        entry.resolve()
        // The caller that awaited the commit continues before the node receives later commits.
        await nextTurn()
      }
      reading = undefined
    }

    function tell(told: readonly Told[]): void {
      try {
        listener?.(told)
      } catch (cause) {
        onGap(new Error('a change of another node could not be taken over', { cause }))
      }
    }

    function refuseWhenGone(): void {
      if (isClosed) throw new Error('the store is closed')
      if (reach !== 'whole') throw new Error('the store did not answer')
    }
  }

  /** Applies a change. Returns what other nodes receive: nothing if the change had no effect. */
  function effectOf(change: Change): Told[] {
    if ('tell' in change) return [{ tell: change.tell, value: bytesOf(change.value) }]
    if ('check' in change) return []
    const key = keyOf(change)
    const stored = values.get(key)
    if (change.order && stored?.time !== undefined && keepsStored(stored.time, change.order)) return []
    const told = toldOf(change)
    return change.isQuiet ? [] : [told]
  }

  function toldOf(change: Exclude<StateChange, { check: string }>): Told {
    if ('del' in change) {
      values.delete(change.del)
      return { del: change.del }
    }
    const value = bytesOf(change.value)
    values.set(change.put, { value, time: change.order?.time })
    return { put: change.put, value }
  }
}

function bytesOf(value: Buffer | string): Buffer {
  return Buffer.from(value)
}
