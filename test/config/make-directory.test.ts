import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ensureDataDirectory } from '../../config/expected.ts'
import { makeDirectory } from '../../config/make-directory.ts'

t.test('a data directory below /proc is refused, and not tried for ever', async (t) => {
  for (const path of ['/proc/hub', '/proc/hub/data'])
    await t.rejects(ensureDataDirectory(path), {
      message: `HUB_DATA_DIR: "${path}", expected a directory that the node may write to`,
    })
})

t.test('directories above are made too, by several at once', async (t) => {
  const path = join(t.testdir(), 'a/b/c')
  await Promise.all([makeDirectory(path), makeDirectory(path), makeDirectory(join(path, 'd'))])
  t.ok(existsSync(join(path, 'd')))
  await makeDirectory(path)
})

t.test('where a file stands, there is an error', async (t) => {
  const path = join(t.testdir(), 'file')
  writeFileSync(path, '')
  await t.rejects(makeDirectory(path), { code: 'EEXIST' })
  await t.rejects(makeDirectory(join(path, 'below')), { code: 'EEXIST' })
})
