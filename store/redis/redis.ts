import { randomBytes } from 'node:crypto'
import { createGroupCommit } from '../group-commit.ts'
import { type Change, Fenced, type SharedStore } from '../store.ts'
import { contentOf, keysBefore, keysBelow } from '../stored-value.ts'
import { encodeGroup } from './changes.ts'
import { createClients, nameOf, type RedisServer } from './client.ts'
import { createConnection, isLoss, isNoAnswer, isOutOfMemory, lost, type OnConnection } from './connection.ts'
import { startDeadline } from './deadline.ts'
import { blockMs, followLog, type LogReader, numbersOf, type Outcome, readPosition } from './log.ts'
import { type Argument, commitScript, keysOf, logMarks, pageScript, type Send, start } from './script.ts'
import { givenUpOf, type Membership, type SentGroup, settleAll, type TimedPending } from './sent.ts'

export interface RedisStoreOptions {
  server: RedisServer
  /** Stores of the same project and stage are one store. */
  project: string
  stage: string
  /** Milliseconds after which a commit or read without an answer rejects. */
  timeoutMs?: number
  /** Bytes that the log of changes may take: how far a node may fall behind without loading all again. */
  logBytes?: number
  /** Replicas that must have a commit before it resolves. */
  replicas?: number
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
  const { server, project, stage, timeoutMs = 5_000, logBytes = 64 * 1024 * 1024, replicas = 0 } = options
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
    .ask((send) => readPosition({ send }, keys))
    .catch((cause: unknown) => {
      connection.close()
      throw new Error(`${name} cannot be used`, { cause })
    })
  if (options.onConnection) connection.onConnection(options.onConnection)
  const commits = createGroupCommit((group: readonly TimedPending[]) => {
    writing = write(group)
    return writing
  })
  /** Groups that were sent, by number, until it is known what became of them. */
  const unsettled = new Map<number, SentGroup>()
  const pendingCommits = new Set<Promise<void>>()
  let number = 0
  let writing: Promise<void> | undefined
  /** When Redis last answered a commit, or told of one, on the clock of `performance.now()`. */
  let answeredAt = Number.NEGATIVE_INFINITY
  /** With which later groups are sent. */
  let fence: Membership | undefined
  /** Redis may have lost what this node knows: it changes nothing any more. */
  let isLost = false
  /** The membership is gone: all commits are refused until this node has entered again. */
  let isFenced = false
  /** What the replicas lack, for a message. */
  let shortfall: string | undefined
  let log: LogReader | undefined
  let closing: Promise<void> | undefined

  return {
    driver: 'redis',

    async get(key) {
      if (closing) throw closedError()
      const stored = await connection.ask((send) => send('hget', [keys.values, key]))
      return Buffer.isBuffer(stored) ? contentOf(stored) : undefined
    },

    async lastNumber() {
      if (closing) throw closedError()
      return Number(await connection.ask((send) => send('hget', [keys.head, 'number'])))
    },

    async *range(prefix, first) {
      const { gte, lt } = keysBelow(prefix, first)
      let from: Buffer | string = `[${gte}`
      for (;;) {
        if (closing) throw closedError()
        const page: Buffer[] = await readPage(from, `(${lt}`)
        yield* entriesOf(page)
        const last = page.at(-2)
        if (!last) return
        from = Buffer.concat([Buffer.from('('), last])
      }
    },

    async last(prefix, count, before) {
      if (closing) throw closedError()
      const { gte, lt } = keysBefore(prefix, before)
      return entriesOf(await readPage(`(${lt}`, `[${gte}`, { isReverse: true, count }))
    },

    commit(changes) {
      if (closing) return Promise.reject(closedError())
      if (isLost) return Promise.reject(new Error(lost))
      if (isFenced) return Promise.reject(new Fenced())
      if (changes.length === 0) return Promise.resolve(0)
      return add(changes)
    },

    async enter(changes, membership) {
      if (closing) throw closedError()
      if (isLost) throw new Error(lost)
      if (fence) refuseAll()
      await add(changes, membership)
    },

    async catchUp() {
      const reader = log
      if (!reader) throw new Error('the store is not followed')
      await connection.ask(async (send) => {
        const head = await readPosition({ send }, keys)
        await new Promise<void>((resolve) => reader.whenPassed(head, resolve))
      })
    },

    follow(listener, onGap) {
      if (log || closing) throw new Error('the store is followed already, or closed')
      const following = createConnection(connect('hub-follow'), { timeoutMs, quietMs: blockMs + timeoutMs })
      const onOwn = async (number: number, outcome: Outcome) => {
        const sent = unsettled.get(number)
        // Redis alone has it; whether replicas do, the answer tells.
        if (replicas > 0 && sent && !sent.outcome) await writing
        settleUpTo(number, outcome)
        return givenUpOf(sent?.commits ?? [])
      }
      log = followLog({ connection: following, keys, node, position, listener, onLost, onGap, onOwn })
    },

    close() {
      closing ??= close()
      return closing
    },
  }

  function add(changes: readonly Change[], membership?: Membership): Promise<number> {
    const committed = new Promise<number>((resolve, reject) => {
      commits.add(timed(changes, membership, resolve, reject))
    })
    const settled = committed.then(forget, forget)
    pendingCommits.add(settled)
    function forget(): void {
      pendingCommits.delete(settled)
    }
    return committed
  }

  async function close(): Promise<void> {
    await Promise.all(pendingCommits)
    await log?.close()
    connection.close()
  }

  async function readPage(
    from: Buffer | string,
    to: string,
    { isReverse = false, count = pageEntries } = {},
  ): Promise<Buffer[]> {
    const args = [from, to, Math.min(count, pageEntries), pageBytes, isReverse ? 'REV' : '']
    const page = await connection.ask((send) => pageScript(send, [keys.values, keys.keys], args))
    return Array.isArray(page) ? page : []
  }

  /**
   * A commit that rejects when its time is up, wherever it is by then. While Redis answers commits before it, it goes on
   * waiting: to give up for a backlog would make clients send everything again, and the backlog longer.
   */
  function timed(
    changes: readonly Change[],
    membership: Membership | undefined,
    resolve: (first: number) => void,
    reject: (error: unknown) => void,
  ): TimedPending {
    let endWait = startDeadline(timeoutMs, giveUpInTime)
    function giveUpInTime(): void {
      const remaining = answeredAt + timeoutMs - performance.now()
      if (remaining > 1) endWait = startDeadline(remaining, giveUpInTime)
      else pending.giveUp()
    }
    const settle = () => {
      endWait()
      pending.isSettled = true
    }
    const pending: TimedPending = {
      changes,
      membership,
      isAlone: membership !== undefined,
      isSent: false,
      isSettled: false,
      isGivenUp: false,
      resolve(first) {
        if (pending.isSettled) return
        settle()
        if (membership) isFenced = false
        resolve(first)
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
        pending.reject(new Error(`not committed, ${fate}: ${shortfall ?? connection.noAnswer().message}`))
      },
    }
    return pending
  }

  async function write(group: readonly TimedPending[]): Promise<void> {
    const current = ++number
    let args: ((read: string) => Argument[]) | undefined
    try {
      const answer = await connection.ask(async (send) => {
        args ??= take(current, group)
        const answer = await commitScript(send, commitKeys, args(log?.position() ?? start))
        if (replicas > 0) await replicated(send)
        return answer
      })
      answeredAt = performance.now()
      fence = group[0]?.membership ?? fence
      const [place = '', failed, base = 0] = String(answer).split(' ')
      const isLogged = !place.startsWith('=')
      const sent = unsettled.get(current)
      if (sent) sent.outcome = { failed: numbersOf(failed), base: Number(base), isLogged }
      const id = isLogged ? place : place.slice(1)
      // One with a place of its own was settled there.
      if (log) log.whenPassed(id, () => (isLogged && unsettled.has(current) ? onLost() : settleUpTo(current)))
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
      if (error instanceof Fenced) refuseAll()
      if (isLoss(error)) onLost()
      if (isMixed && shrinking.length > 0) await write(shrinking)
    }
  }

  /** Resolves when as many replicas as there should be have everything that was written on this connection. */
  async function replicated(send: Send): Promise<void> {
    for (;;) {
      const reached = Number(await send('wait', [replicas, waitMs]))
      if (reached >= replicas) break
      shortfall = `${reached} of ${replicas} replicas of Redis have it`
    }
    shortfall = undefined
  }

  /** Refuses what waits, all later commits, and what Redis has answered but not told: it may have lost that. */
  function onLost(): void {
    isLost = true
    const answered = [...unsettled.values()].flatMap((sent) => sent.commits)
    unsettled.clear()
    for (const pending of [...answered, ...commits.withdrawAll()]) {
      if (!pending.isSettled) pending.reject(new Error(lost))
    }
  }

  /** Refuses what waits, and all later commits, but those that enter. */
  function refuseAll(): void {
    isFenced = true
    for (const pending of commits.withdrawAll()) {
      if (pending.membership) commits.add(pending)
      else pending.reject(new Fenced())
    }
  }

  /** A group as it is sent: without commits whose callers have given up. One that enters is not fenced. */
  function take(number: number, group: readonly TimedPending[]): (read: string) => Argument[] {
    const alive = group.filter(({ isSettled }) => !isSettled)
    unsettled.set(number, { commits: alive })
    for (const pending of alive) pending.isSent = true
    const { changes, conditions, taken } = encodeGroup(alive.map(({ changes }) => changes))
    const fenced = fence && !group[0]?.membership ? [fence.key, fence.value] : []
    return (read) => [node, number, changes, markEvery, conditions, taken, read, ...fenced]
  }

  /** `lastOutcome`: of the last group, where its answer did not arrive. */
  function settleUpTo(last: number, lastOutcome: Outcome = { failed: [], base: 0, isLogged: false }): void {
    answeredAt = performance.now()
    for (const [number, { commits, outcome = lastOutcome }] of unsettled) {
      if (number > last) return
      // Its place in the log did not come before that of a later one: it is gone.
      if (log && number < last && outcome.isLogged && outcome !== lastOutcome) {
        onLost()
        return
      }
      unsettled.delete(number)
      settleAll(commits, outcome)
    }
  }
}

/** Time that one WAIT may take, in which the connection does nothing else. */
const waitMs = 100

/** Size of one answer of a range. */
const pageEntries = 512
const pageBytes = 1024 * 1024

/** Keys and values in turn, as entries. */
function entriesOf(page: readonly Buffer[]): [key: string, value: Buffer][] {
  const entries: [string, Buffer][] = []
  for (let index = 0; index + 1 < page.length; index += 2) {
    const [key, stored] = page.slice(index, index + 2)
    if (key && stored) entries.push([key.toString(), contentOf(stored)])
  }
  return entries
}

function isDeletion(change: Change): boolean {
  return 'del' in change || 'check' in change
}

function closedError(): Error {
  return new Error('the store is closed')
}
