/** Makes a function that calls `work` on its first call only. */
export function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
