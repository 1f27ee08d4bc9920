import type { Change, Store } from '../../store/store.ts'
import { deadPrefix, encodeWork, workPrefix } from './work-records.ts'

/*
 * The work of the release before in the store: an item or dead letter is JSON with the number of its body, and
 * `work-body/{number}` is a body, which several can share.
 */

const bodyPrefix = 'work-body/'
const openBrace = '{'.charCodeAt(0)

/** The changes that make work of the release before work of this one, in which each item has its own payload. */
export async function* formerWork(store: Store): AsyncGenerator<Change[]> {
  for (const prefix of [workPrefix, deadPrefix]) {
    for await (const [key, value] of store.range(prefix)) {
      // A value of this release begins with a position.
      if (value[0] !== openBrace) continue
      const { body, ...item } = JSON.parse(value.toString())
      // Without a body it becomes a dead letter when it is tried.
      const payload = await store.get(bodyPrefix + String(body).padStart(16, '0'))
      yield [{ put: key, value: encodeWork(0, item, payload) }]
    }
  }
  for await (const [key] of store.range(bodyPrefix)) yield [{ del: key }]
}
