import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/**
 * Collects garbage, so that a test can tell what is still in use. V8 frees the buffers of a collection beside the
 * program, at the latest before its next collection: therefore twice.
 */
export function collectGarbage(): void {
  collect()
  collect()
}
