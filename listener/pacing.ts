import { createFairQueue } from './fair-queue.ts'

/** Facts about one call that is paced. */
interface About {
  /** Key of the asker, such as a client address. Askers are served alternately. Calls without a key share one asker. */
  asker?: string
  /**
   * Whether the call is no longer needed, for example because its connection is closed. Such a call is dropped, and
   * does not count for the pace.
   */
  isOver?: () => boolean
}

export type Pacing = ReturnType<typeof createPacing>

/**
 * Lets `perTurn` calls through within `everyTurns` turns of the event loop, and further calls in later turns. Askers
 * are served alternately, and the calls of one asker keep their order. So a burst of calls that cost a millisecond each
 * holds up no other work.
 */
export function createPacing(perTurn: number, everyTurns = 1) {
  const fitsTurn = countPerTurn(perTurn, everyTurns)
  const waiting = createFairQueue<About & { resume: () => void }>()

  return {
    /** Whether the call may go on now. If not, `resume` is called when it may. */
    enter(resume: () => void, about: About = {}): boolean {
      if (waiting.size() === 0 && fitsTurn()) return true
      waiting.add(about.asker ?? '', { ...about, resume })
      if (waiting.size() === 1) setImmediate(letThrough)
      return false
    },
  }

  function letThrough(): void {
    const through: (() => void)[] = []
    while (waiting.size() > 0 && fitsTurn()) {
      const next = nextToDo()
      if (next) through.push(next)
    }
    if (waiting.size() > 0) setImmediate(letThrough)
    for (const resume of through) resume()
  }

  function nextToDo(): (() => void) | undefined {
    for (;;) {
      const next = waiting.next()
      if (!next?.isOver?.()) return next?.resume
    }
  }
}

/** Returns a function: within `turns` turns of the event loop it answers true to `most` calls, and then false. */
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
