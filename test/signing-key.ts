import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { projectFile } from './root.ts'

/*
 * Gives most nodes of tests a key to sign tokens with. Making one takes 0.3 s of processor time, and a run of all tests
 * starts some 1,000 nodes. A node's first key is tested in `test/soak/certs/signing-keys.test.ts`.
 */

/** Number of keys. The nodes of a test file take different keys. */
const count = 16
let next = 0

/** Makes a store with nothing but a key, if the data directory does not exist yet. */
export async function shareSigningKey(dataDir: string): Promise<void> {
  if (existsSync(dataDir)) return
  const shared = await nextKey()
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await cp(join(shared, 'store'), join(dataDir, 'store'), { recursive: true })
}

/** Puts a key into a Redis that no node has used yet. */
export async function shareSigningKeyOn(url: string): Promise<void> {
  const { openRedisStore } = await import('../store/redis/redis.ts')
  const { put, value } = JSON.parse(await readFile(join(await nextKey(), 'record.json'), 'utf8'))
  const store = await openRedisStore({ server: { url }, project: 'hub', stage: 'test' })
  await store.commit([{ put, value }])
  await store.close()
}

/** The path of a folder with a key (`record.json`, `store`). The first test that needs the folder makes it. */
async function nextKey(): Promise<string> {
  const folder = projectFile('.tap/signing-keys')
  const path = join(folder, String(next++ % count))
  if (existsSync(path)) return path
  // Imported here: many tests import this file and make no key.
  const [{ createSigningKeys }, { openEmbeddedStore }] = await Promise.all([
    import('../certs/signing-keys.ts'),
    import('../store/embedded.ts'),
  ])
  await mkdir(folder, { recursive: true })
  const draft = await mkdtemp(join(folder, 'draft-'))
  const store = await openEmbeddedStore(join(draft, 'store'))
  await createSigningKeys({ store, clock: Date.now, keepMs: 0, leadMs: 0 })
  for await (const [put, value] of store.range('signing-key/')) {
    await writeFile(join(draft, 'record.json'), JSON.stringify({ put, value: value.toString() }))
  }
  await store.close()
  // Another test may have made it meanwhile.
  await rename(draft, path).catch(() => rm(draft, { recursive: true }))
  return path
}
