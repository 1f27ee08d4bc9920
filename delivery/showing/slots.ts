/** Lets so many run at once. Others wait, the first first. */
export function createSlots(most: number) {
  const waiting: (() => void)[] = []
  let running = 0

  return {
    async run<T>(work: () => Promise<T>): Promise<T> {
      if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
      else running++
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next) next()
        else running--
      }
    },
  }
}
