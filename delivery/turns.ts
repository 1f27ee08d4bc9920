/**
 * Lets what changes the same queue happen one after the other, so that each finds what the one before has left:
 * between a decision and its commit there is time in which the queue could become another.
 */
export function createTurns() {
  const last = new Map<string, Promise<unknown>>()

  return <Result>(queue: string, work: () => Promise<Result>): Promise<Result> => {
    const turn = (last.get(queue) ?? Promise.resolve()).then(work, work)
    last.set(queue, turn)
    const forget = () => {
      if (last.get(queue) === turn) last.delete(queue)
    }
    turn.then(forget, forget)
    return turn
  }
}
