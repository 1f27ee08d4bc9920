import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { openEmbeddedStore } from '../store/embedded.ts'

/** Opens an embedded store until the test ends: in a directory that is kept, or a new one. */
export async function openStore(t: Pick<Test, 'teardown'>, directory?: string) {
  const own = directory ?? (await mkdtemp(join(tmpdir(), 'store-')))
  const store = await openEmbeddedStore(own)
  t.teardown(async () => {
    await store.close()
    if (directory === undefined) await rm(own, { recursive: true })
  })
  return store
}
