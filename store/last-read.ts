import type { Store } from './store.ts'

/**
 * Watches which record the conversion of a former store reads. If it cannot read a record, its error says nothing of
 * the key. `explained` adds it.
 */
export function watchReads({ range, get }: Pick<Store, 'range' | 'get'>) {
  let last: string | undefined

  return {
    reads: {
      get(key: string) {
        last = key
        return get(key)
      },
      async *range(...of: Parameters<Store['range']>): ReturnType<Store['range']> {
        for await (const record of range(...of)) {
          last = record[0]
          yield record
        }
      },
    },

    /** An error with the key of the record that was read last, if it comes from reading a record. */
    explained(error: unknown): unknown {
      const isOfReading =
        error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError
      if (!isOfReading || last === undefined) return error
      const key = JSON.stringify(last.slice(0, 200))
      return new Error(
        `the store has a record that cannot be read, ${key}: import a backup into an empty store`,
        { cause: error },
      )
    },
  }
}
