import { randomBytes } from 'node:crypto'
import { createGroupCommit, type Pending } from '../group-commit.ts'
import type { Change, SharedStore } from '../store.ts'
import { contentOf, keysBelow } from '../stored-value.ts'
import { encodeChanges } from './changes.ts'
import { createClients, nameOf, type RedisServer } from './client.ts'
import { createConnection, isNoAnswer, isOutOfMemory, type OnConnection } from './connection.ts'
import { blockMs, followLog, type LogReader, readPosition } from './log.ts'
import { commitScript, keysOf, logMarks, pageScript } from './script.ts'

export interface RedisStoreOptions {
  server: RedisServer
  /** Stores of the same project and stage are one store. */
  project: string
  stage: string
  /** Milliseconds after which a commit or read without an answer rejects. */
  timeoutMs?: number
  /** Bytes that the log of changes may take: how far a node may fall behind without loading all again. */
  logBytes?: number
  onConnection?: OnConnection
}

/**
 * The driver that nodes share: everything lives in one Redis (one server, Sentinel or Cluster).
 *
 * Waiting commits go out together as one call of a script, which applies them, keeps out what is older than
 * what it would replace, and appends them to a log that the other nodes read. "On disk" is what Redis makes of
 * it: append-only file, `appendfsync`.
 *
 * A group without an answer is sent again until its time is up; it has a number, so that it is applied once.
 * A commit that was rejected for want of an answer may still be applied, but never after a later one of this
 * node. Rejects with a readable reason when Redis cannot be reached.
 */
export async function openRedisStore(options: RedisStoreOptions): Promise<SharedStore> {
  const { server, project, stage, timeoutMs = 5_000, logBytes = 64 * 1024 * 1024 } = options
  const node = randomBytes(9).toString('base64url')
  const keys = keysOf(`${project}:${stage}`)
  const commitKeys = [keys.values, keys.keys, keys.log, keys.head, keys.marks, keys.writer(node)]
  const markEvery = Math.ceil(logBytes / logMarks)
  const name = nameOf(server)
  const connect = await createClients(server, timeoutMs).catch((cause: unknown) => {
    throw new Error(`${name} cannot be used`, { cause })
  })
  const connection = createConnection(connect('hub-store'), { timeoutMs, quietMs: timeoutMs })
  const position = await connection
    .ask((send) => readPosition({ send }, keys), connection.deadline())
    .catch((cause: unknown) => {
      connection.close()
      throw new Error(`${name} cannot be used`, { cause })
    })
  if (options.onConnection) connection.onConnection(options.onConnection)
  const commits = createGroupCommit(write)
  /** Groups that were sent, by number, until it is known what became of them. */
  const unsettled = new Map<number, readonly TimedPending[]>()
  const pendingCommits = new Set<Promise<void>>()
  let number = 0
  /** When Redis last answered a commit, or told of one, on the clock of `performance.now()`. */
  let answeredAt = Number.NEGATIVE_INFINITY
  let log: LogReader | undefined
  let closing: Promise<void> | undefined

  return {
    driver: 'redis',

    async get(key) {
      if (closing) throw closedError()
      const stored = await connection.ask((send) => send('hget', [keys.values, key]), connection.deadline())
      return Buffer.isBuffer(stored) ? contentOf(stored) : undefined
    },

    async *range(prefix) {
      const { gte, lt } = keysBelow(prefix)
      let from: Buffer | string = `[${gte}`
      for (;;) {
        if (closing) throw closedError()
        const page: Buffer[] = await readPage(from, `(${lt}`)
        for (let index = 0; index + 1 < page.length; index += 2) {
          const [key, stored] = page.slice(index, index + 2)
          if (key && stored) yield [key.toString(), contentOf(stored)]
        }
        const last = page.at(-2)
        if (!last) return
        from = Buffer.concat([Buffer.from('('), last])
      }
    },

    commit(changes) {
      if (closing) return Promise.reject(closedError())
      if (changes.length === 0) return Promise.resolve()
      const committed = new Promise<void>((resolve, reject) => commits.add(timed(changes, resolve, reject)))
      const settled = committed.then(forget, forget)
      pendingCommits.add(settled)
      function forget(): void {
        pendingCommits.delete(settled)
      }
      return committed
    },

    follow(listener, onGap) {
      if (log || closing) throw new Error('the store is followed already, or closed')
      const following = createConnection(connect('hub-follow'), { timeoutMs, quietMs: blockMs + timeoutMs })
      const onOwn = (number: number) => {
        const givenUp = givenUpOf(unsettled.get(number) ?? [])
        settleUpTo(number)
        return givenUp
      }
      log = followLog({ connection: following, keys, node, position, listener, onGap, onOwn })
    },

    close() {
      closing ??= close()
      return closing
    },
  }

  async function close(): Promise<void> {
    await Promise.all(pendingCommits)
    await log?.close()
    connection.close()
  }

  async function readPage(from: Buffer | string, to: string): Promise<Buffer[]> {
    const args = [from, to, pageEntries, pageBytes]
    const page = await connection.ask(
      (send) => pageScript(send, [keys.values, keys.keys], args),
      connection.deadline(),
    )
    return Array.isArray(page) ? page : []
  }

  /**
   * A commit that rejects when its time is up, wherever it is by then. While Redis answers commits before it, it goes on
   * waiting: to give up for a backlog would make clients send everything again, and the backlog longer.
   */
  function timed(
    changes: readonly Change[],
    resolve: () => void,
    reject: (error: unknown) => void,
  ): TimedPending {
    const began = performance.now()
    let timer = setTimeout(giveUpInTime, timeoutMs)
    function giveUpInTime(): void {
      const remaining = Math.max(began, answeredAt) + timeoutMs - performance.now()
      if (remaining > 1) timer = setTimeout(giveUpInTime, remaining)
      else pending.giveUp()
    }
    const settle = () => {
      clearTimeout(timer)
      pending.isSettled = true
    }
    const pending: TimedPending = {
      changes,
      isSent: false,
      isSettled: false,
      isGivenUp: false,
      resolve() {
        settle()
        resolve()
      },
      reject(error) {
        settle()
        reject(error)
      },
      giveUp() {
        if (pending.isSettled) return
        commits.withdraw(pending)
        pending.isGivenUp = true
        const fate = pending.isSent ? 'it may still be applied' : 'nothing of it was applied'
        pending.reject(new Error(`not committed, ${fate}: ${connection.noAnswer().message}`))
      },
    }
    return pending
  }

  async function write(group: readonly TimedPending[]): Promise<void> {
    const current = ++number
    let changes: Buffer | undefined
    try {
      const id = await connection.ask((send) => {
        changes ??= take(current, group)
        return commitScript(send, commitKeys, [node, current, changes, markEvery])
      }, connection.deadline())
      answeredAt = performance.now()
      if (log) log.whenPassed(String(id), () => settleUpTo(current))
      else settleUpTo(current)
    } catch (error) {
      if (isNoAnswer(error)) {
        for (const pending of group) pending.giveUp()
        return
      }
      answeredAt = performance.now()
      unsettled.delete(current)
      // Deletions make room, and must not wait for it.
      const shrinking = isOutOfMemory(error) ? group.filter(({ changes }) => changes.every(isDeletion)) : []
      const isMixed = shrinking.length < group.length
      for (const pending of group) if (!isMixed || !shrinking.includes(pending)) pending.reject(error)
      if (isMixed && shrinking.length > 0) await write(shrinking)
    }
  }

  /** The changes of a group as they are sent: without commits whose callers have given up. */
  function take(number: number, group: readonly TimedPending[]): Buffer {
    const alive = group.filter(({ isSettled }) => !isSettled)
    unsettled.set(number, alive)
    for (const pending of alive) pending.isSent = true
    return encodeChanges(alive.flatMap(({ changes }) => changes))
  }

  function settleUpTo(last: number): void {
    answeredAt = performance.now()
    for (const [number, group] of unsettled) {
      if (number > last) return
      unsettled.delete(number)
      for (const pending of group) pending.resolve()
    }
  }
}

interface TimedPending extends Pending {
  isSent: boolean
  isSettled: boolean
  /** Rejected, and may be applied all the same. */
  isGivenUp: boolean
  giveUp(): void
}

/** Where in a group that was sent the changes lie whose callers have given up since. */
function givenUpOf(group: readonly TimedPending[]): [from: number, to: number][] {
  const ranges: [number, number][] = []
  let from = 1
  for (const { changes, isGivenUp } of group) {
    if (isGivenUp) ranges.push([from, from + changes.length - 1])
    from += changes.length
  }
  return ranges
}

/** Size of one answer of a range. */
const pageEntries = 512
const pageBytes = 1024 * 1024

function isDeletion(change: Change): boolean {
  return 'del' in change
}

function closedError(): Error {
  return new Error('the store is closed')
}
