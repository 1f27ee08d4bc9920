import type { Store } from './store.ts'

/**
 * Watches which record a start reads, until `end`. If a part cannot read a record, its error says nothing of the key.
 * `explained` adds it.
 */
export function watchReads(store: Pick<Store, 'range' | 'get'>) {
  let last: string | undefined
  let isOver = false
  const { range, get } = store

  return {
    reads: {
      get(key: string) {
        if (!isOver) last = key
        return get(key)
      },
      range: (...of: Parameters<Store['range']>) => (isOver ? range(...of) : noting(of)),
    },

    /** The start is over. */
    end(): void {
      isOver = true
    },

    /** An error with the key of the record that was read last, if it comes from reading a record. */
    explained(error: unknown): unknown {
      const isOfReading =
        error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError
      if (!isOfReading || last === undefined) return error
      const key = JSON.stringify(last.slice(0, 200))
      return new Error(
        `the store has a record that cannot be read, ${key}: import a backup into an empty store`,
        {
          cause: error,
        },
      )
    },
  }

  async function* noting(of: Parameters<Store['range']>): AsyncGenerator<[key: string, value: Buffer]> {
    for await (const record of range(...of)) {
      last = record[0]
      yield record
    }
  }
}
