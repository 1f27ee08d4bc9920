/** A deadline consists of this many timers, one after another. */
const parts = 4

/**
 * Calls `over` after `ms` milliseconds, unless the caller gets its answer first and calls the returned function. A
 * pause of this node (a long turn of the event loop, or a stopped process) is not the fault of Redis. A deadline has
 * several timers, so that a pause uses up at most one of them. Before it calls `over`, the node reads what arrived
 * during the pause. If that is the answer, `over` is not called.
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
