/**
 * A queue that serves askers alternately, however many items each has. An asker is a key, such as a client's address.
 */
export function createFairQueue<T>() {
  const queues = new Map<string, T[]>()
  let size = 0

  return {
    size: (): number => size,
    sizeOf: (asker: string): number => queues.get(asker)?.length ?? 0,

    add(asker: string, item: T): void {
      const own = queues.get(asker)
      if (own) own.push(item)
      else queues.set(asker, [item])
      size++
    },

    /** Takes out the first item of the asker that is served next. */
    next(): T | undefined {
      const [first] = queues
      if (!first) return undefined
      const [asker, own] = first
      const item = own.shift()
      size--
      // If the asker has items left, it goes behind the others.
      queues.delete(asker)
      if (own.length > 0) queues.set(asker, own)
      return item
    },

    /** The asker with the most items. */
    busiest(): string | undefined {
      const [busiest] = [...queues].sort(([, a], [, b]) => b.length - a.length)
      return busiest?.[0]
    },

    /** Takes out the last item of an asker. */
    takeLast(asker: string): T | undefined {
      const own = queues.get(asker)
      if (!own) return undefined
      const item = own.pop()
      size--
      if (own.length === 0) queues.delete(asker)
      return item
    },
  }
}
