import type { Change, Store } from '../../store/store.ts'
import { deadPrefix, encodeWork, workPrefix } from './work-records.ts'

/*
 * The previous release stored only JSON at the keys of today. The payload was at `work-body/{number}`: field `body` of
 * the JSON has the number, and several items can share a body.
 */

const bodyPrefix = 'work-body/'
const openBrace = '{'.charCodeAt(0)

/** Yields the changes that give every item and dead letter of the previous release its own copy of the payload. */
export async function* formerWork(store: Store): AsyncGenerator<Change[]> {
  for (const prefix of [workPrefix, deadPrefix]) {
    for await (const [key, value] of store.range(prefix)) {
      // Skip values of this release: they begin with a position, not with a brace.
      if (value[0] !== openBrace) continue
      const { body, ...item } = JSON.parse(value.toString())
      // Without a payload, the first attempt turns the item into a dead letter.
      const payload = await store.get(bodyPrefix + String(body).padStart(16, '0'))
      yield [{ put: key, value: encodeWork(0, item, payload) }]
    }
  }
  for await (const [key] of store.range(bodyPrefix)) yield [{ del: key }]
}
