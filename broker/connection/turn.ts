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
