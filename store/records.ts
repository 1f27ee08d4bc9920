import { type Family, families, prefixOf } from './keys.ts'
import type { StoredRecord } from './store.ts'

/**
 * Why no node could read a record: its key and what is expected. Undefined: a node can read it, or no node of this
 * release reads its family.
 */
export function problemOf({ key, value }: StoredRecord): string | undefined {
  const family = families.get(prefixOf(key))
  if (!family) return undefined
  const expected = keyProblem(key, family) ?? (value && family.value(value))
  return (
    expected &&
    `the record ${JSON.stringify(key.slice(0, 200))} of ${JSON.stringify(family.prefix)} cannot be read, expected ${expected}`
  )
}

/** Whether only the nodes that use the store now need a record, so that no export has it. */
export function isOfNodes(key: string): boolean {
  return families.get(prefixOf(key))?.isOfNodes ?? false
}

function keyProblem(key: string, { prefix, key: { form, expected, isEncoded } }: Family): string | undefined {
  const rest = key.slice(prefix.length)
  const problem = `a key that has ${expected} behind ${prefix}`
  if (!form.test(rest)) return problem
  if (!isEncoded) return undefined
  try {
    decodeURIComponent(rest)
    return undefined
  } catch {
    return `${problem}, percent-encoded`
  }
}
