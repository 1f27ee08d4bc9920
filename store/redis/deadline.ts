/** A deadline passes in so many parts. */
const parts = 4

/**
 * Calls `over` after `ms` milliseconds without an answer; the function that it returns ends the wait. A long turn of the
 * event loop, or a process that was stopped, uses up one part of the time at most. An answer that arrived meanwhile is
 * read before `over` is called: it is no fault of Redis that this node did not look.
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
