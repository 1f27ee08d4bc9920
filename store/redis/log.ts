import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { Told } from '../store.ts'
import { decodeChanges } from './changes.ts'
import { type Connection, type OnConnection, textOf } from './connection.ts'
import { type Keys, start } from './script.ts'

/** Longest time that Redis waits for a new entry, milliseconds. */
export const blockMs = 2_000
/** Maximum number of entries in one answer. */
const batchSize = 32
/**
 * Time from an answer until the next read while many entries come, milliseconds: docs/decisions, "Between two
 * reads of the log, entries gather".
 */
const gatherMs = 100
/** So many entries in `gatherMs` are many. */
const manyEntries = 4
/** How long the log must be unreadable before that is reported, milliseconds. */
const unreadMs = 3_000

/**
 * Settles a commit of this node, and returns undefined. A commit that was given up (`TimedPending.isGivenUp`) is
 * settled already. For such a commit, returns the range of its changes in the group, counted from 1. The reader then
 * hands these changes to `listener`.
 */
export type EndCommit = () => Range | undefined

interface Range {
  from: number
  upTo: number
}

/** The outcome of a group of commits. */
export interface CommitOutcome {
  /** Which conditions of the group did not hold: their indexes, from 1. */
  failed: readonly number[]
  /** The group has a log entry. */
  isLogged: boolean
  /** The first number that the group took, or 0 if it took none. */
  base: number
}

/** The newest entry of the log whose changes this node may know. */
export interface Known {
  id: () => string
  /** Notes the log entry that an answer of Redis has named. The answer may show all changes up to this entry. */
  saw: (id: string) => void
}

export type LogReader = ReturnType<typeof followLog>

/** How a reader of the log reports that the log cannot be read. */
interface Reports {
  onReading: OnConnection
  /** Since when Redis is reachable, by `performance.now()`. */
  upSince: () => number
}

/** What the reader of the log needs. */
interface Following extends Reports {
  connection: Connection
  keys: Keys
  /** The name of this node in the log. */
  node: string
  position: string
  /** The id of the newest entry that Redis has named, perhaps later than `position`. */
  seen: () => string
  /** Whether a commit of this node waits for the reader, or `listener` needs the next changes at once. */
  isAwaited: () => boolean
  listener: (changes: readonly Told[]) => void
  /** Called at a gap, before further commits settle: Redis may have lost data. */
  onLost: () => void
  onGap: (reason: Error) => void
  /**
   * Called when the reader reaches a group of this node. Resolves with the commits that the reader must end, in their
   * order; none if all are settled.
   */
  onOwn: (number: number, outcome: CommitOutcome) => Promise<readonly EndCommit[]>
}

/**
 * Reads the log of changes from `position` on, until `close`. Each entry names the entry before it, so the reader
 * notices a missing entry.
 */
export function followLog(parts: Following) {
  const { connection, keys, node, seen, isAwaited, listener, onLost, onGap, onOwn } = parts
  const progress = createProgress(parts)
  const passing = createPassing(parts.position)
  const gathering = createGathering(() => isAwaited() || passing.isAwaited())
  let position = parts.position
  let isClosed = false
  /** Why the reader must leap. Set until a leap has succeeded. */
  let gap: Error | undefined
  const reading = read()

  return {
    /** The id of the last entry read. `listener` may get this entry later. */
    position: (): string => position,

    progress,

    /** Makes the reader leap to the end of the log. Called when Redis may have lost data that this node knows. */
    mustLeap(reason: Error): void {
      gap ??= reason
    },

    /** Calls back when `listener` has all entries up to `id`, or after a gap. */
    whenPassed(id: string, onPassed: () => void): void {
      passing.when(id, onPassed)
      gathering.hurry()
    },

    /** Reads on at once. */
    hurry: gathering.hurry,

    async close(): Promise<void> {
      isClosed = true
      connection.close()
      gathering.hurry()
      await reading
    },
  }

  async function read(): Promise<void> {
    let isContinuous = false
    while (!isClosed) {
      try {
        await connection.ready()
        if (gap) await leap(gap)
        if (!isContinuous) await checkPosition()
        isContinuous = true
        const options = ['COUNT', batchSize, 'BLOCK', blockMs, 'STREAMS', keys.log, position]
        const entries = newEntriesOf(await connection.send('xread', options))
        progress.answered(entries.length)
        await take(entries)
        // Signs of life make new entries all the time. If no entry arrives, Redis may have lost the log. The reader
        // then checks its position.
        isContinuous = entries.length > 0
        if (isContinuous) await gathering.pause(entries.length)
      } catch (error) {
        // After an error, the reader tries again from `position` on.
        isContinuous = false
        if (isClosed) return
        progress.failed(error)
        await delay(20)
      }
    }
  }

  /** Leaps if the log no longer has the last entry read, or the newest entry known. */
  async function checkPosition(): Promise<void> {
    for (const id of new Set([position, later(position, seen())])) {
      if (id === start) continue
      const found = await connection.send('xrange', [keys.log, id, id])
      if (Array.isArray(found) && found.length > 0) continue
      return leap(new Error(`the log of changes no longer has the entry ${id}`))
    }
  }

  async function take(entries: readonly LogEntry[]): Promise<void> {
    for (const entry of entries) {
      if (isClosed) return
      if (entry.previous !== position) {
        return leap(new Error(`the log of changes has nothing between ${position} and ${entry.id}`))
      }
      position = entry.id
      try {
        if (entry.node === node)
          await endInOrder(await onOwn(entry.number, entry), (givenUp) => tell(entry, givenUp))
        else tell(entry)
      } catch (cause) {
        return leap(new Error('a change of another node could not be taken over', { cause }))
      }
      // Callers act on settled commits before `listener` receives the next entry.
      if (passing.upTo(entry.id) || entry.node === node) await nextTurn()
    }
  }

  /** Calls `listener` with the changes in the range, without those of `withoutEffect`. */
  function tell(
    { changes, base, withoutEffect }: LogEntry,
    { from, upTo } = { from: 1, upTo: Infinity },
  ): void {
    const isNews = (number: number) => number >= from && number <= upTo && !withoutEffect.has(number)
    const news = decodeChanges(changes, base, isNews)
    if (news.length > 0) listener(news)
  }

  /** Skips to the end of the log, and reports a gap. */
  async function leap(reason: Error): Promise<void> {
    gap = reason
    onLost()
    position = await readPosition(connection, keys)
    gap = undefined
    passing.leapTo(position)
    await nextTurn()
    // Calls `onGap` outside of the reading loop. The loop would take an error of `onGap` for a failure of reading.
    queueMicrotask(() => onGap(reason))
  }
}

/** Lets further entries gather between two reads while many come, unless the next ones are awaited. */
function createGathering(isAwaited: () => boolean) {
  let end = () => {}
  let since = performance.now()
  let count = 0
  let areMany = false
  return {
    /** Pauses after an answer with this number of entries. */
    async pause(read: number): Promise<void> {
      count += read
      const passedMs = performance.now() - since
      if (passedMs >= gatherMs) {
        areMany = count * gatherMs >= manyEntries * passedMs
        since += passedMs
        count = 0
      }
      if (!areMany || read === batchSize || isAwaited()) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, gatherMs)
        end = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
    hurry: (): void => end(),
  }
}

/** Notes how the reader of the log gets on. */
function createProgress({ onReading, upSince }: Reports) {
  let answeredAt = performance.now()
  let entriesAt = answeredAt
  let problem = ''
  let isReported = false

  return {
    /** When entries were last read, by `performance.now()`. */
    entriesAt: (): number => entriesAt,

    /** For an error message: why the reader has not reached an entry yet. */
    problem: (): string =>
      problem ? unreadable(problem) : 'the log of changes of Redis was not read in time',

    /** Redis has answered, with this number of new entries. */
    answered(count: number): void {
      answeredAt = performance.now()
      if (count > 0) entriesAt = answeredAt
      problem = ''
      if (isReported) onReading({ up: true })
      isReported = false
    },

    failed(error: unknown): void {
      problem = textOf(error)
      if (isReported || performance.now() - Math.max(answeredAt, upSince()) < unreadMs) return
      isReported = true
      onReading({ up: false, reason: problem })
    },
  }
}

/** Says that the log cannot be read, and why. */
export function unreadable(reason: string): string {
  return `the log of changes of Redis cannot be read (${reason})`
}

async function endInOrder(ends: readonly EndCommit[], tell: (givenUp: Range) => void): Promise<void> {
  let givenUp: Range | undefined
  try {
    for (const end of ends) {
      const next = end()
      if (next) {
        givenUp = { from: givenUp?.from ?? next.from, upTo: next.upTo }
        continue
      }
      // A commit was settled just now. Its caller goes on in a later microtask, so this comes first.
      if (givenUp) tell(givenUp)
      givenUp = undefined
      await nextTurn()
    }
    if (givenUp) tell(givenUp)
  } finally {
    // After an error of `tell`, the remaining commits still settle. A second `end` has no effect.
    for (const end of ends) end()
  }
}

/**
 * Calls back when an entry has passed: `listener` has all changes up to this entry, and this node's commits up to this
 * entry are settled.
 */
function createPassing(position: string) {
  let waiting: { id: string; onPassed: () => void }[] = []
  let passed = position

  return {
    isAwaited: (): boolean => waiting.length > 0,

    when(id: string, onPassed: () => void): void {
      if (isBefore(passed, id)) waiting.push({ id, onPassed })
      else onPassed()
    },

    /** Notes that all entries up to `id` have passed. True: a caller waited for one of them. */
    upTo: (id: string): boolean => callBack(id, (next) => !isBefore(id, next)),

    /** Calls back all callers, because the entries that they wait for may be gone. */
    leapTo: (id: string): boolean => callBack(id, () => true),
  }

  function callBack(id: string, isDue: (next: string) => boolean): boolean {
    passed = id
    const due = waiting.filter((each) => isDue(each.id))
    waiting = waiting.filter((each) => !isDue(each.id))
    for (const { onPassed } of due) onPassed()
    return due.length > 0
  }
}

/** The id of the newest entry of the log. */
export async function readPosition(connection: Pick<Connection, 'send'>, keys: Keys): Promise<string> {
  const id = await connection.send('hget', [keys.head, 'id'])
  return Buffer.isBuffer(id) ? id.toString() : start
}

interface LogEntry extends CommitOutcome {
  id: string
  previous: string
  node: string
  number: number
  withoutEffect: ReadonlySet<number>
  changes: Buffer
}

/** The entries in an answer to XREAD; none if nothing arrived within `blockMs`. */
function newEntriesOf(answer: unknown): LogEntry[] {
  return Array.isArray(answer) ? entriesOf(answer[0][1]) : []
}

/** The entries in an answer to XRANGE. */
export function entriesOf(answer: unknown): LogEntry[] {
  return Array.isArray(answer) ? answer.map(entryOf) : []
}

function entryOf([id, fields]: [id: Buffer, fields: Buffer[]]): LogEntry {
  const texts = new Map<string, string>()
  let changes: Buffer = Buffer.alloc(0)
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = changes] = [fields[at]?.toString(), fields[at + 1]]
    if (name === 'changes') changes = value
    else texts.set(name, value.toString())
  }
  const [node = '', number, failed] = (texts.get('writer') ?? '').split(' ')
  return {
    id: id.toString(),
    previous: texts.get('previous') ?? '',
    node,
    number: Number(number),
    failed: numbersOf(failed),
    isLogged: true,
    base: Number(texts.get('base') ?? 0),
    withoutEffect: new Set(numbersOf(texts.get('withoutEffect'))),
    changes,
  }
}

/** The numbers of a list like `3,5`. */
export function numbersOf(list = ''): number[] {
  return list === '' ? [] : list.split(',').map(Number)
}

/** The id of the later one of two entries. */
export function later(left: string, right: string): string {
  return isBefore(left, right) ? right : left
}

function isBefore(left: string, right: string): boolean {
  const [leftTime = 0, leftCount = 0] = left.split('-').map(Number)
  const [rightTime = 0, rightCount = 0] = right.split('-').map(Number)
  return leftTime < rightTime || (leftTime === rightTime && leftCount < rightCount)
}
