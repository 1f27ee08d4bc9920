import type { Change, Store } from '../../store/store.ts'
import { deadPrefix, encodeWork, workPrefix } from './work-records.ts'

/*
 * The previous release used the same keys as this release, but stored only JSON there. The payload had a key of its
 * own, `work-body/{number}`. Field `body` of the JSON is this number. Several items can share a payload.
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
