import { createFairQueue } from './fair-queue.ts'

/** Facts about one call that is paced. */
interface About {
  /** Key of the asker, such as a client address. Calls without a key share one asker. */
  asker?: string
  /** True: the call is no longer needed, and is dropped without counting for the pace. */
  isOver?: () => boolean
}

export type Pacing = ReturnType<typeof createPacing>

/**
 * Lets `perTurn` calls through within `everyTurns` turns of the event loop, and further calls in later turns. Serves
 * askers alternately, and keeps the order of each asker's calls. A burst of expensive calls must hold up no other work.
 */
export function createPacing(perTurn: number, everyTurns = 1) {
  const fitsTurn = countPerTurn(perTurn, everyTurns)
  const waiting = createFairQueue<About & { resume: () => void }>()
  /** Calls wait, and go on in a later turn. */
  let isLate = false

  return {
    enter,
    /** Resolves when the call may go on. */
    turn: (about?: About): Promise<void> =>
      new Promise((resolve) => {
        if (enter(resolve, about)) resolve()
      }),
  }

  /** Whether the call may go on now. If not, `resume` is called when it may. */
  function enter(resume: () => void, about: About = {}): boolean {
    if (!isLate && fitsTurn()) return true
    waiting.add(about.asker ?? '', { ...about, resume })
    if (!isLate) setImmediate(letThrough)
    isLate = true
    return false
  }

  function letThrough(): void {
    const through: (() => void)[] = []
    while (waiting.size() > 0 && fitsTurn()) {
      const next = nextToDo()
      if (next) through.push(next)
    }
    isLate = waiting.size() > 0
    if (isLate) setImmediate(letThrough)
    for (const resume of through) resume()
  }

  function nextToDo(): (() => void) | undefined {
    for (;;) {
      const next = waiting.next()
      if (!next?.isOver?.()) return next?.resume
    }
  }
}

/** Returns a function: in `turns` turns of the event loop, its first `most` calls return true, the rest false. */
export function countPerTurn(most: number, turns = 1): () => boolean {
  let first = -turns
  let count = 0
  return () => {
    const turn = currentTurn()
    if (turn >= first + turns) {
      first = turn
      count = 0
    }
    if (count >= most) return false
    count++
    return true
  }
}

/**
 * Returns a function that adds an amount, and returns true if all amounts of this turn of the event loop are at most
 * `most` together. The first amount of a turn always fits. An amount that does not fit is not added.
 */
export function sumPerTurn(most: number): (amount: number) => boolean {
  let last = -1
  let sum = 0
  return (amount) => {
    const turn = currentTurn()
    if (turn !== last) sum = 0
    last = turn
    if (sum > 0 && sum + amount > most) return false
    sum += amount
    return true
  }
}

/**
 * Returns a function: in a turn of the event loop, it returns true until `most` milliseconds have passed since its first
 * call. The first call of a turn always returns true.
 */
export function timePerTurn(most: number): () => boolean {
  let last = -1
  let began = 0
  return () => {
    const turn = currentTurn()
    const now = performance.now()
    if (turn === last) return now - began <= most
    last = turn
    began = now
    return true
  }
}

let turn = 0
let isCounted = false

/** A number that differs between any two turns of the event loop. */
function currentTurn(): number {
  if (!isCounted) {
    isCounted = true
    setImmediate(() => {
      isCounted = false
      turn++
    })
  }
  return turn
}
