import type { ClientError } from './errors.ts'

const aMinute = 60_000

/** Tells problems with a connection. Attempts follow each other: the same one is told again only after a minute. */
export function createTelling(onProblem: (problem: ClientError) => void) {
  let last = ''
  let toldAt = 0
  return {
    tell(problem: ClientError): void {
      const now = performance.now()
      if (problem.message === last && now - toldAt < aMinute) return
      last = problem.message
      toldAt = now
      onProblem(problem)
    },
    /** Returns whether a problem was told since the last connection. */
    connected(): boolean {
      const wasLost = last !== ''
      last = ''
      return wasLost
    },
  }
}
