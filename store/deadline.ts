/** A deadline consists of this many timers, one after another. */
const parts = 4

/**
 * Calls `over` after `ms` milliseconds, or never if the returned function is called first. After a pause of this node,
 * answers that have arrived are read before `over`: docs/decisions, "A deadline passes in four parts".
 */
export function startDeadline(ms: number, over: () => void): () => void {
  let left = parts
  let turn: NodeJS.Immediate | undefined
  let timer = setTimeout(next, ms / parts)
  return () => {
    clearTimeout(timer)
    clearImmediate(turn)
  }

  function next(): void {
    if (--left > 0) timer = setTimeout(next, ms / parts)
    else turn = setImmediate(over)
  }
}

/** Settles like `promise`, or resolves with `late` if `promise` has not settled after `ms` milliseconds. */
export function inTimeOr<T, Late>(promise: Promise<T>, ms: number, late: Late): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const end = startDeadline(ms, () => resolve(late))
    promise.then(resolve, reject).finally(end)
  })
}
