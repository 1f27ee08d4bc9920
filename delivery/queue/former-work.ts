import type { Change, Store } from '../../store/store.ts'
import { deadPrefix, encodeWork, workPrefix } from './work-records.ts'

/*
 * How the previous release stored work: an item or dead letter is JSON with the number of its body. The body itself is
 * stored as `work-body/{number}`, and several items can share it.
 */

const bodyPrefix = 'work-body/'
const openBrace = '{'.charCodeAt(0)

/** The changes that convert work of the previous release to this release, in which each item has its own payload. */
export async function* formerWork(store: Store): AsyncGenerator<Change[]> {
  for (const prefix of [workPrefix, deadPrefix]) {
    for await (const [key, value] of store.range(prefix)) {
      // A value of this release begins with a position.
      if (value[0] !== openBrace) continue
      const { body, ...item } = JSON.parse(value.toString())
      // An item without a body becomes a dead letter when it is tried.
      const payload = await store.get(bodyPrefix + String(body).padStart(16, '0'))
      yield [{ put: key, value: encodeWork(0, item, payload) }]
    }
  }
  for await (const [key] of store.range(bodyPrefix)) yield [{ del: key }]
}
