import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Member, membersPlace } from '../../store/nodes/members.ts'
import type { Store } from '../../store/store.ts'

/** What a store holds only when a hub was used, by where it lies. A node that has just started leaves none of it. */
const content: Record<string, string> = {
  'credential/': 'credentials',
  'user/': 'users',
  'subscription/': 'webhooks',
  'topic/': 'topics',
  'journal/': 'events',
  'retained/': 'retained messages',
  'session/': 'sessions',
  'work/': 'waiting deliveries',
  'work-dead/': 'dead letters',
  'lifecycle/': 'settings of the life cycle',
}

/** What stands against taking an export into this store, in words; nothing where it is empty and only this node's. */
export async function contentOf(store: Store, dataDir: string): Promise<string[]> {
  const found: string[] = []
  for (const [prefix, name] of Object.entries(content)) {
    for await (const _ of store.range(prefix)) {
      found.push(name)
      break
    }
  }
  const others = await nodesOf(store, dataDir)
  return others.length > 0 ? [...found, `nodes that use it (${others.join(', ')})`] : found
}

/** The nodes that use a store, but for the one of this data directory. */
export async function nodesOf(store: Store, dataDir: string): Promise<string[]> {
  const self = await readFile(join(dataDir, 'node'), 'utf8').catch(() => undefined)
  return membersOf(store, self)
}

/** What operators call the nodes that use a store, but for the one with the id `self`. */
export async function membersOf(store: Store, self?: string): Promise<string[]> {
  const names: string[] = []
  for await (const [, value] of store.range(membersPlace)) {
    const { node, name }: Member = JSON.parse(value.toString())
    if (node !== self) names.push(name)
  }
  return names
}
