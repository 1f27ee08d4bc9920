/** Number of parts, one timer each, in which the time of a deadline passes. */
const parts = 4

/**
 * Calls `over` after `ms` milliseconds, unless the caller gets its answer first and calls the returned function. A long
 * turn of the event loop, or a stopped process, uses up at most one part of the time. An answer that came meanwhile is
 * read before `over` is called, because Redis is not to blame for a pause of this node.
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
