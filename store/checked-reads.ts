import { problemOf } from './records.ts'
import type { Store } from './store.ts'

type Reads = Pick<Store, 'get' | 'range' | 'last'>

/**
 * Judges each record that a start reads, until `end`. A record that no node could read ends the read: the error names
 * the record, what is expected, and what to do.
 */
export function checkReads({ get, range, last }: Reads) {
  let isOver = false
  const reads: Reads = {
    get: (key) => (isOver ? get(key) : get(key).then((value) => check(key, value))),
    range: (...of) => (isOver ? range(...of) : checked(range(...of))),
    async last(...of) {
      const records = await last(...of)
      if (!isOver) for (const [key, value] of records) check(key, value)
      return records
    },
  }
  return {
    reads,
    /** The start is over. */
    end(): void {
      isOver = true
    },
  }
}

/** The records of a range, each one judged. */
export async function* checked(records: ReturnType<Store['range']>): ReturnType<Store['range']> {
  for await (const record of records) {
    check(...record)
    yield record
  }
}

function check<Value extends Buffer | undefined>(key: string, value: Value): Value {
  const problem = value && problemOf({ key, value })
  if (problem === undefined) return value
  throw new Error(`${problem}: the store is damaged. Import a backup into an empty store`)
}
