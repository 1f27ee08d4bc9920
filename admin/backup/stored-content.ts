import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { families } from '../../store/keys.ts'
import { type Member, membersPrefix } from '../../store/nodes/members.ts'
import type { Store } from '../../store/store.ts'

/** The reasons against an import into this store: names of its data, and other nodes. */
export async function contentOf(store: Store, dataDir: string): Promise<string[]> {
  const found: string[] = []
  for (const { prefix, content } of families.values()) {
    if (content === undefined) continue
    for await (const _ of store.range(prefix, { most: 1 })) found.push(content)
  }
  const others = await nodesOf(store, dataDir)
  return others.length > 0 ? [...found, `nodes that use it (${others.join(', ')})`] : found
}

/** Names of the nodes that use a store, except the node of this data directory. */
export async function nodesOf(store: Store, dataDir: string): Promise<string[]> {
  const self = await readFile(join(dataDir, 'node'), 'utf8').catch(() => undefined)
  return membersOf(store, self)
}

/** Names of the nodes that use a store, except the node with the id `self`. */
export async function membersOf(store: Store, self?: string): Promise<string[]> {
  const names: string[] = []
  for await (const [, value] of store.range(membersPrefix)) {
    const { node, name }: Member = JSON.parse(value.toString())
    if (node !== self) names.push(name)
  }
  return names
}
