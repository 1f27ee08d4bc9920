/**
 * Lets so many through in one turn of the event loop, and the others in the next ones, in the order of the calls: what
 * comes in a burst, and costs a millisecond each, must not hold up everything else.
 */
export function createTurns(perTurn: number) {
  const fitsTurn = countPerTurn(perTurn)
  let waiting: (() => void)[] = []

  return {
    /** Whether it may go on now. If not, `resume` is called when it may. */
    enter(resume: () => void): boolean {
      if (waiting.length === 0 && fitsTurn()) return true
      waiting.push(resume)
      if (waiting.length === 1) setImmediate(letThrough)
      return false
    },
  }

  function letThrough(): void {
    let through = 0
    while (through < waiting.length && fitsTurn()) through++
    const next = waiting.slice(0, through)
    waiting = waiting.slice(through)
    if (waiting.length > 0) setImmediate(letThrough)
    for (const resume of next) resume()
  }
}

/** Counts what is done in one turn of the event loop: the answer is false when it would be more than `most`. */
export function countPerTurn(most: number): () => boolean {
  let seen = -1
  let count = 0
  return () => {
    const turn = currentTurn()
    if (seen !== turn) count = 0
    seen = turn
    if (count >= most) return false
    count++
    return true
  }
}

let turn = 0
let isCounted = false

/** A number that is another one in each turn of the event loop. */
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
