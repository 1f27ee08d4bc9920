/** What `work` does with a storage of the browser. Undefined: the browser forbids that, and the page goes on without. */
export function inStorage<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
