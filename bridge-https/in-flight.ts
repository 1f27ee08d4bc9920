/** An asker is given up when so many bytes of it wait. */
const maxWaitingBytes = 4 * 1024 * 1024

/**
 * Lets requests of an asker go on while those that are under way have `mostBytes` together at most. Others wait in their
 * order. The first one always goes on.
 */
export function createInFlight(mostBytes: number) {
  const askers = new Map<string, AskerInFlight>()

  return {
    /**
     * Resolves when the request may go on. The caller calls the returned function when the request is done. Undefined:
     * too much waits already.
     */
    async enter(asker: string, bytes: number): Promise<(() => void) | undefined> {
      const own = askers.get(asker) ?? { underWay: 0, waiting: [], waitingBytes: 0 }
      if (own.waitingBytes + bytes > maxWaitingBytes) return undefined
      askers.set(asker, own)
      own.waitingBytes += bytes
      await new Promise<void>((resolve) => {
        own.waiting.push({ bytes, resolve })
        letThrough(own)
      })
      return () => {
        own.underWay -= bytes
        letThrough(own)
        if (own.underWay === 0) askers.delete(asker)
      }
    },
  }

  function letThrough(own: AskerInFlight): void {
    for (let [first] = own.waiting; first; [first] = own.waiting) {
      if (own.underWay > 0 && own.underWay + first.bytes > mostBytes) return
      own.waiting.shift()
      own.waitingBytes -= first.bytes
      own.underWay += first.bytes
      first.resolve()
    }
  }
}

interface AskerInFlight {
  /** Bytes of the requests that have gone on and are not done. */
  underWay: number
  waiting: { bytes: number; resolve: () => void }[]
  waitingBytes: number
}
