import { hash } from 'node:crypto'
import { digits } from '../store/commit.ts'
import type { Prepare } from '../store/commit-together.ts'
import { storeKeys } from '../store/keys.ts'
import { type Change, ConditionFailed, type Store } from '../store/store.ts'

export type Repetitions = Awaited<ReturnType<typeof createRepetitions>>

/** How long a repetition is recognised, milliseconds. No publisher repeats an event automatically for that long. */
const rememberMs = 3_600_000
/** Maximum number of marks: see `Mark`. */
const maxRemembered = 100_000
/** Each new mark may remove this many old marks. If this number were 1, the total of marks could never fall. */
const forgottenAtOnce = 2
/** Maximum number of decisions about one event: see `decideWithRetries`. */
const maxDecisions = 3
const { prefix } = storeKeys.workSeen
/** A condition on one of these keys fails because another node was first. Then the event is decided again. */
const decidedAgain = [prefix, storeKeys.workSet.prefix]
/**
 * If at least one service of an event was left out, the event has a second mark. The key of this mark ends in `in
 * part`. The key of a mark for work ends in a livestream id or a queue name, and none of these is called `in part`.
 */
const inPart = 'in part'
/** The key of a third mark ends in this: where the journal has an event with values of the livestream feed. */
const asStored = 'as stored'

/** The changes that store a piece of work. `show` then runs, with the first position of the commit in the journal. */
export interface Work {
  changes: readonly Change[]
  show: (first: number) => void
}

const noWork = (): Work => ({ changes: [], show() {} })

/** One event on its way to the store, within `decideWithRetries`. */
export interface Repetition {
  /** The id of the event. A repeated event keeps its first id. */
  id: string
  /** An equal event came before. It is stored or being stored. */
  isRepeated: boolean
  /** An equal event came before, and was published for all of its services. */
  isRepeatedWhole: boolean
  /** Notes that the event is not published for at least one of its services (see `isRepeatedWhole`). */
  markPublishedInPart(): void
  /**
   * An event that was completed from the livestream feed, as the first was stored: its payload, or the position of its
   * first message. So a repetition is sent the same, also after the feed changed (open.md §2). Undefined for others.
   */
  first: { payload: Buffer } | { position: number } | undefined
  /** Notes how an event that was completed from the livestream feed is stored. Of equal events, the first counts. */
  keepAsStored(payload: Buffer): void
  /**
   * Returns the changes of one piece of work. Returns none if this work is stored, or being stored, for an equal event.
   * `scope` names the work, such as a livestream id.
   */
  once(scope: string, make: () => Work): readonly Change[]
  /** Stores the marks of the event and of its work (`once`), and removes old marks. */
  marks: Prepare
}

/** A mark to be stored, and the callback that makes the marked work visible. */
interface NewMark {
  mark: Mark
  show: Work['show']
}

/**
 * Recognises repeated events within an hour. A repeated event keeps its id, and no work is done twice
 * (docs/decisions, "A repeated event keeps its id").
 */
export async function createRepetitions(parts: { store: Store; clock: () => number }) {
  const { store, clock } = parts
  /** Marks that are being stored, by their keys. */
  const pending = new Map<string, Mark>()
  /** Payloads of events that are being stored, by the keys of their marks (`asStored`). */
  const underway = new Map<string, Buffer>()
  /** Stored marks. The key is `{fingerprint}` for an event, and `{fingerprint}/{scope}` for work. */
  const marks = createMarks({
    limit: maxRemembered,
    isOld: (mark) => !isRecent(mark),
    // A mark must stay while a newer mark with the same key is being stored.
    isBusy: ({ key }) => pending.has(key),
  })
  /** Marks that a failed commit should have removed. The next commit tries again. */
  let unremovedMarks: Mark[] = []
  const found: Mark[] = []
  for await (const [key, value] of store.range(prefix)) found.push(readMark(key.slice(prefix.length), value))
  for (const mark of found.sort((a, b) => a.at - b.at)) marks.add(mark)

  store.onOthers(prefix, (key, value) => {
    if (value) marks.add(readMark(key.slice(prefix.length), value))
    else marks.remove(key.slice(prefix.length))
  })

  /** Starts the `Repetition` of an event. `newId` makes its id, unless an equal event came before. */
  return (fingerprint: string, newId: () => string): Repetition => {
    const stored = remembered(fingerprint)
    const beingStored = stored ? undefined : pending.get(fingerprint)
    const earlier = (stored ?? beingStored)?.id
    const id = earlier ?? newId()
    const at = clock()
    const own: NewMark[] = []
    const awaited: Mark[] = []
    let asFirstStored: Buffer | undefined
    if (beingStored) awaited.push(beingStored)
    else if (!stored) note(fingerprint)

    return {
      id,
      isRepeated: earlier !== undefined,
      isRepeatedWhole: earlier !== undefined && !isKnown(`${fingerprint}/${inPart}`, id),
      markPublishedInPart: () => void mark(`${fingerprint}/${inPart}`),
      first: earlier === undefined ? undefined : firstOf(`${fingerprint}/${asStored}`, id),
      keepAsStored(payload) {
        if (earlier !== undefined) return
        mark(`${fingerprint}/${asStored}`)
        asFirstStored = payload
      },
      once: (scope, make) => mark(`${fingerprint}/${scope}`, make),
      marks() {
        for (const { mark } of own) pending.set(mark.key, mark)
        if (asFirstStored) underway.set(`${fingerprint}/${asStored}`, asFirstStored)
        const forgotten = forget(own.length * forgottenAtOnce, fingerprint)
        const changes: Change[] = []
        for (const { key } of forgotten) changes.push({ del: prefix + key })
        for (const { mark } of own) changes.push(markChange(mark))
        // An equal event may still be on its way to the store. If the commit of that event fails, this commit must
        // fail too.
        for (const mark of awaited) changes.push({ check: prefix + mark.key, when: { value: textOf(mark) } })
        return {
          changes,
          end(how) {
            for (const { mark } of own) release(mark)
            if (how === 'failed') {
              unremovedMarks.push(...forgotten)
              return
            }
            for (const { key } of forgotten) marks.remove(key)
            for (const { mark, show } of own) {
              // The first message of the event is the first of its commit.
              if (isAsStored(mark)) mark.position = how
              marks.add(mark)
              show(how)
            }
          },
        }
      },
    }

    function mark(key: string, make = noWork): readonly Change[] {
      if (remembered(key)?.id === id) return []
      const first = pending.get(key)
      if (first?.id === id) {
        awaited.push(first)
        return []
      }
      return note(key, make)
    }

    function note(key: string, make = noWork): readonly Change[] {
      const { changes, show } = make()
      own.push({ mark: newMark(key, at, id), show })
      return changes
    }
  }

  function isKnown(key: string, id: string): boolean {
    return remembered(key)?.id === id || pending.get(key)?.id === id
  }

  function release(mark: Mark): void {
    if (pending.get(mark.key) !== mark) return
    pending.delete(mark.key)
    underway.delete(mark.key)
  }

  function firstOf(key: string, id: string): Repetition['first'] {
    const mark = remembered(key)
    if (mark?.id === id && mark.position !== undefined) return { position: mark.position }
    const payload = pending.get(key)?.id === id ? underway.get(key) : undefined
    return payload && { payload }
  }

  /** The change that stores a mark. The whole commit fails if another node has changed the mark meanwhile. */
  function markChange(mark: Mark): Change {
    if (isAsStored(mark)) {
      // The store writes the position in front. The mark of the event itself has the condition.
      return { put: prefix + mark.key, value: textOf(mark), numbered: { nth: 0, at: 'value' } }
    }
    const before = marks.get(mark.key)
    const when = before ? { value: textOf(before) } : 'absent'
    return { put: prefix + mark.key, value: textOf(mark), when, onlyOthers: true }
  }

  function remembered(key: string): Mark | undefined {
    const mark = marks.get(key)
    return mark && isRecent(mark) ? mark : undefined
  }

  /**
   * Whether the time of a mark is less than `rememberMs` from now. If the clock was set back, a mark may lie in the
   * future. A mark far in the future is not recent.
   */
  function isRecent({ at }: Mark): boolean {
    return Math.abs(clock() - at) < rememberMs
  }

  /**
   * Returns marks to remove. The `unremovedMarks` that may still be removed come first. Old or surplus marks come next,
   * until there are `count` marks in all. `count` 0: returns none.
   */
  function forget(count: number, fingerprint: string): Mark[] {
    if (count === 0) return []
    // If the event came again, a newer mark may have replaced an unremoved one under the same key. The newer mark must
    // stay, so this key is not removed.
    const again = unremovedMarks.filter((mark) => mark.isCurrent && !pending.has(mark.key))
    unremovedMarks = []
    return [...again, ...marks.take(count - again.length, fingerprint)]
  }
}

/**
 * Calls `decide`, which decides about an event and stores the decision. Calls `decide` again if the commit failed
 * because of a mark: another node was first, or an equal event was not stored. The same if another node has removed the
 * set of queues that the event was to name. Rejects after `maxDecisions` calls, and at once with any other error.
 */
export async function decideWithRetries<Result>(
  decide: (isAgain: boolean) => Promise<Result>,
): Promise<Result> {
  for (let decisions = 1; ; decisions++) {
    try {
      return await decide(decisions > 1)
    } catch (error) {
      const key = error instanceof ConditionFailed ? error.key : ''
      const isOvertaken = decidedAgain.some((one) => key.startsWith(one))
      if (!isOvertaken || decisions === maxDecisions) throw error
    }
  }
}

/**
 * Two events have the same fingerprint if institution, kind and bytes are equal. The kind counts: over HTTPS, the kind
 * may be only in the URL. A next track and a playing track can then have equal bytes.
 *
 * In a fingerprint, the part before the slash stands for the institution (`institutionOf`).
 */
export function fingerprintOf(kind: string, institutionId: string, payload: Buffer): string {
  const institution = hash('sha256', institutionId, 'base64url').slice(0, institutionLength)
  const event = Buffer.concat([Buffer.from(`${kind}\n${institutionId}\n`), payload])
  return `${institution}/${hash('sha256', event, 'base64url').slice(0, fingerprintLength)}`
}

const institutionLength = 8
/** Number of characters. Each has 6 bits: with 132 bits, an attacker cannot find two events with one fingerprint. */
const fingerprintLength = 22

/** The stored form of a mark: its time and its id. */
function textOf({ at, id }: Mark): string {
  return `${at} ${id}`
}

function readMark(key: string, value: Buffer): Mark {
  const text = value.toString()
  const start = isAsStored({ key }) ? digits : 0
  const [at, ...id] = text.slice(start).split(' ')
  const mark = newMark(key, Number(at), id.join(' '))
  if (start > 0) mark.position = Number(text.slice(0, start))
  return mark
}

function newMark(key: string, at: number, id: string): Mark {
  return { key, at, id, position: undefined, isCurrent: false }
}

function isAsStored({ key }: Pick<Mark, 'key'>): boolean {
  return key.endsWith(`/${asStored}`)
}

/** A record that the hub got an event, or did some work for the event. */
interface Mark {
  /** Begins with the institution of the event: `{institution}/…`. */
  key: string
  /** When the hub got the event first, milliseconds since the epoch. */
  at: number
  id: string
  /** Only of a mark `asStored`: the position of the event's first message in the journal. */
  position: number | undefined
  /** The mark is kept, and no newer one has replaced it. */
  isCurrent: boolean
}

/**
 * Keeps marks in memory, in one queue per institution. Many events of one publisher must not push out the marks of
 * others.
 */
function createMarks(parts: {
  /** Maximum number of marks in all. Above this number, the institution with the most marks loses its oldest. */
  limit: number
  /** Whether a mark is too old to count. */
  isOld: (mark: Mark) => boolean
  /** Whether a mark must not be removed now. */
  isBusy: (mark: Mark) => boolean
}) {
  const { limit, isOld, isBusy } = parts
  const seen = new Map<string, Mark>()
  /** Queues of marks by institution. The institution that has added no mark for the longest time comes first. */
  const lines = new Map<string, MarkLine>()

  return {
    get: (key: string): Mark | undefined => seen.get(key),

    add(mark: Mark): void {
      const institution = institutionOf(mark.key)
      const line = lines.get(institution) ?? createLine()
      lines.delete(institution)
      lines.set(institution, line)
      const replaced = seen.get(mark.key)
      if (replaced) replaced.isCurrent = false
      else line.current++
      seen.set(mark.key, mark)
      mark.isCurrent = true
      firstOf(line)
      line.add(mark)
    },

    remove(key: string): void {
      const mark = seen.get(key)
      if (!mark) return
      seen.delete(key)
      mark.isCurrent = false
      const institution = institutionOf(key)
      const line = lines.get(institution)
      if (line && --line.current === 0) lines.delete(institution)
    },

    /**
     * Returns at most `count` marks to remove. Old marks of the institution of `key` come first. Old marks of other
     * institutions come next, and surplus marks if `limit` is reached. `take` returns no mark twice, so the caller
     * must remove all returned marks.
     */
    take(count: number, key: string): Mark[] {
      const taken: Mark[] = []
      const takeWhile = (line: MarkLine | undefined, mayGo: (mark: Mark) => boolean) => {
        while (line && taken.length < count) {
          const mark = firstOf(line)
          if (!mark || !mayGo(mark) || isBusy(mark)) return
          line.drop()
          taken.push(mark)
        }
      }
      takeWhile(lines.get(institutionOf(key)), isOld)
      for (const line of lines.values()) {
        takeWhile(line, isOld)
        if (taken.length >= count || line.first()) break
      }
      if (seen.size >= limit) takeWhile(longest(), () => seen.size - taken.length >= limit)
      return taken
    },
  }

  /** The first current mark of a queue. Drops replaced and removed marks before it. */
  function firstOf(line: MarkLine): Mark | undefined {
    for (;;) {
      const mark = line.first()
      if (!mark || mark.isCurrent) return mark
      line.drop()
    }
  }

  function longest(): MarkLine | undefined {
    return [...lines.values()].reduce<MarkLine | undefined>(
      (most, line) => (most && most.current >= line.current ? most : line),
      undefined,
    )
  }
}

type MarkLine = ReturnType<typeof createLine>

/**
 * A queue of marks, the oldest first. It is an array, which gives the first entry at once. A Map would first step over
 * all deleted entries.
 */
function createLine() {
  let marks: Mark[] = []
  let first = 0
  return {
    /** Number of marks that have not been replaced or removed. */
    current: 0,
    add: (mark: Mark) => void marks.push(mark),
    first: (): Mark | undefined => marks[first],
    drop(): void {
      first++
      if (first < 1_024 || first * 2 < marks.length) return
      marks = marks.slice(first)
      first = 0
    },
  }
}

function institutionOf(key: string): string {
  const end = key.indexOf('/')
  return end < 0 ? key : key.slice(0, end)
}
