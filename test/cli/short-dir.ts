import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** A temporary directory with a short path. Paths of `t.testdir()` are too long for a Unix socket (107 bytes). */
export async function shortDir(t: Test): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'hub-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  return dir
}
