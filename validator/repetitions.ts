import { hash } from 'node:crypto'
import { type Change, ConditionFailed, type Store } from '../store/store.ts'
import { createMarks, type Mark } from './marks.ts'

export type Repetitions = Awaited<ReturnType<typeof createRepetitions>>

/** How long a repetition is recognised, milliseconds: longer than a publisher keeps repeating an event by itself. */
const rememberMs = 3_600_000
/** Marks that are remembered. */
const maxRemembered = 100_000
/** Each new mark may remove this many old marks, so that more marks are removed than added. */
const forgottenAtOnce = 2
/** Most decisions about one event: its marks may change meanwhile, through other nodes or an earlier repetition. */
const maxDecisions = 3
const prefix = 'work-seen/'
/** Scope that marks an event as published in part only. No livestream has this name. */
const inPart = 'in part'

/** Changes to store, and a function to call when they are stored. */
export interface Work {
  changes: readonly Change[]
  /** `first`: the first number that the commit took. */
  show: (first: number) => void
}

/**
 * One event on its way to the store. The caller puts all changes that these methods return into one commit, and then
 * calls exactly one of `stored` and `failed`. The commit fails if the event has been marked meanwhile: see
 * `decideAgain`.
 */
export interface Repetition {
  /** The id of the event that came first. */
  id: string
  /** An equal event came before, and was stored or is being stored. */
  isRepeated: boolean
  /** An equal event came before, and was published for all of its livestreams, not only for some. */
  isRepeatedWhole: boolean
  /** Remembers that the event is published only in part this time, so that a repetition may publish the rest. */
  inPart(): void
  /** Returns the changes of work that is done once for each event; none if it was done for this event before. */
  once(scope: string, make: () => Work): readonly Change[]
  /** The changes by which the event is recognised later. */
  marks(): readonly Change[]
  /** To be called when the commit is stored. `first`: the first number that it took in the journal. */
  stored(first: number): void
  /** To be called when the commit failed. */
  failed(): void
}

/** A mark that is being stored, and the function that shows its work once the mark is stored. */
interface Pending {
  mark: Mark
  show: Work['show']
}

/**
 * Remembers the events that came in, and the work done for them. A publisher that repeats an event (no acknowledgement
 * came, a retransmission after a crash) gets the same id again, and does not cause the same work twice. The marks are
 * stored with the event.
 */
export async function createRepetitions(parts: { store: Store; clock: () => number }) {
  const { store, clock } = parts
  /** Marks that are being stored, by their keys. */
  const pending = new Map<string, Mark>()
  /** Stored marks, by fingerprint, or by fingerprint and scope. */
  const marks = createMarks({
    limit: maxRemembered,
    isOld: (mark) => !isRecent(mark),
    // A pending mark is about to be stored with a new time.
    isBusy: ({ key }) => pending.has(key),
  })
  /** Marks that were to be forgotten with a commit that failed. */
  let left: Mark[] = []
  const found: Mark[] = []
  for await (const [key, value] of store.range(prefix)) found.push(readMark(key.slice(prefix.length), value))
  for (const mark of found.sort((a, b) => a.at - b.at)) marks.add(mark)

  store.onOthers(prefix, (change) => {
    if ('put' in change) marks.add(readMark(change.put.slice(prefix.length), change.value))
    else if ('del' in change) marks.remove(change.del.slice(prefix.length))
  })

  /** Starts the `Repetition` of an event. `newId` makes its id, unless an equal event came before. */
  return (fingerprint: string, newId: () => string): Repetition => {
    const earlier = remembered(fingerprint)?.id ?? pending.get(fingerprint)?.id
    const id = earlier ?? newId()
    const at = clock()
    const own: Pending[] = []
    const awaited: Mark[] = []
    let forgotten: readonly Mark[] = []
    mark(fingerprint, () => ({ changes: [], show() {} }))

    return {
      id,
      isRepeated: earlier !== undefined,
      isRepeatedWhole: earlier !== undefined && !isKnown(`${fingerprint}/${inPart}`, id),
      inPart: () => void mark(`${fingerprint}/${inPart}`, () => ({ changes: [], show() {} })),
      once: (scope, make) => mark(`${fingerprint}/${scope}`, make),
      marks() {
        forgotten = forget(own.length * forgottenAtOnce, fingerprint)
        return [
          ...forgotten.map(({ key }) => ({ del: prefix + key })),
          ...own.map(({ mark }) => markChange(mark)),
          // An equal event is still being stored. If that fails, this commit fails as well.
          ...awaited.map((mark) => ({ check: prefix + mark.key, when: { value: textOf(mark) } })),
        ]
      },
      stored(first) {
        for (const mark of forgotten) if (marks.has(mark)) marks.remove(mark.key)
        for (const each of own) {
          release(each)
          marks.add(each.mark)
          each.show(first)
        }
      },
      failed() {
        left.push(...forgotten)
        for (const each of own) release(each)
      },
    }

    function mark(key: string, make: () => Work): readonly Change[] {
      if (remembered(key)?.id === id) return []
      const first = pending.get(key)
      if (first?.id === id) {
        awaited.push(first)
        return []
      }
      const { changes, show } = make()
      const made = { key, at, id }
      pending.set(key, made)
      own.push({ mark: made, show })
      return changes
    }
  }

  function isKnown(key: string, id: string): boolean {
    return remembered(key)?.id === id || pending.get(key)?.id === id
  }

  function release({ mark }: Pending): void {
    if (pending.get(mark.key) === mark) pending.delete(mark.key)
  }

  /** Stores a mark, unless another node has marked the event since. */
  function markChange(mark: Mark): Change {
    const before = marks.get(mark.key)
    const when = before ? { value: textOf(before) } : 'absent'
    return { put: prefix + mark.key, value: textOf(mark), when, onlyOthers: true }
  }

  function remembered(key: string): Mark | undefined {
    const mark = marks.get(key)
    return mark && isRecent(mark) ? mark : undefined
  }

  /** Marks with a time far ahead are not recent either: they come from a clock that was set back. */
  function isRecent({ at }: Mark): boolean {
    return Math.abs(clock() - at) < rememberMs
  }

  /** Returns marks to forget: those of failed commits, then up to `count` in all that are too old or too many. */
  function forget(count: number, fingerprint: string): Mark[] {
    if (count === 0) return []
    // Leaves out marks whose event has come again.
    const again = left.filter((mark) => marks.has(mark) && !pending.has(mark.key))
    left = []
    return [...again, ...marks.take(count - again.length, fingerprint)]
  }
}

/**
 * Decides about an event and stores it. If another node has marked the event meanwhile, or an equal event could not be
 * stored, the commit fails. Then `decide` is called again: by now this node knows the outcome of the others.
 */
export async function decideAgain<Result>(decide: (isAgain: boolean) => Promise<Result>): Promise<Result> {
  for (let decisions = 1; ; decisions++) {
    try {
      return await decide(decisions > 1)
    } catch (error) {
      const isMarked = error instanceof ConditionFailed && error.key.startsWith(prefix)
      if (!isMarked || decisions === maxDecisions) throw error
    }
  }
}

/**
 * Two events have the same fingerprint if institution, kind and bytes are equal. The kind counts, because over HTTPS
 * only the URL distinguishes the next track from the playing one. A fingerprint begins with the institution, so that
 * marks are counted by institution.
 */
export function fingerprintOf(kind: string, institutionId: string, payload: Buffer): string {
  const institution = hash('sha256', institutionId, 'base64url').slice(0, institutionLength)
  const event = Buffer.concat([Buffer.from(`${kind}\n${institutionId}\n`), payload])
  return `${institution}/${hash('sha256', event, 'base64url').slice(0, fingerprintLength)}`
}

const institutionLength = 8
/** 132 bits: too many for anyone to find two events with the same fingerprint. */
const fingerprintLength = 22

/** The stored form of a mark: its time and its id. */
function textOf({ at, id }: Mark): string {
  return `${at} ${id}`
}

function readMark(key: string, value: Buffer): Mark {
  const [at, ...id] = value.toString().split(' ')
  return { key, at: Number(at), id: id.join(' ') }
}
