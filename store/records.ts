import { digits } from './commit.ts'
import { type Family, families, prefixOf } from './keys.ts'
import type { StoredRecord } from './store.ts'

/**
 * Why no node could read a record: its key and what is expected. Undefined: a node can read it, or no node of this
 * release reads its family.
 */
export function problemOf({ key, value }: StoredRecord): string | undefined {
  const family = families.get(prefixOf(key))
  if (!family) return undefined
  const read = readKey(key, family)
  const expected = 'problem' in read ? read.problem : value && family.value(value, read.name)
  return (
    expected &&
    `the record ${JSON.stringify(key.slice(0, 200))} of ${JSON.stringify(family.prefix)} cannot be read, expected ${expected}`
  )
}

/**
 * The highest positions in a record that has no problem. `given`: the store gave it with a message, so the store has
 * counted up to there. `passed`: somebody has got so far, and would miss messages up to there. 0: there is none.
 */
export function positionsIn({ key, value }: StoredRecord): { given: number; passed: number } {
  const family = families.get(prefixOf(key))
  const { numbered } = family ?? {}
  const text = numbered === 'key' ? key.slice(-digits) : value?.toString('latin1', 0, digits)
  return {
    given: numbered === undefined ? 0 : Number(text ?? 0),
    passed: Math.max(0, ...((value && family?.passed(value)) ?? [])),
  }
}

/** Whether only the nodes that use the store now need a record, so that no export has it. */
export function isOfNodes(key: string): boolean {
  return families.get(prefixOf(key))?.isOfNodes ?? false
}

/** The last name in a key, decoded. `problem`: what the key must be. */
function readKey(
  key: string,
  { prefix, key: { form, expected, isEncoded } }: Family,
): { name: string } | { problem: string } {
  const rest = key.slice(prefix.length)
  const problem = `a key that has ${expected} behind ${prefix}`
  if (!form.test(rest)) return { problem }
  if (!isEncoded) return { name: rest }
  try {
    const name = rest.split('/').map(decodeURIComponent).at(-1) ?? ''
    return { name }
  } catch {
    return { problem: `${problem}, percent-encoded` }
  }
}
