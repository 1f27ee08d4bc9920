import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { keepOn } from '../../bench/cores.ts'

/** A `taskset` that fails in its first calls, as the real one does when a thread ends while it goes over them. */
function failingFirst(t: Test, calls: number, says: string) {
  const path = join(t.testdir({}), 'taskset')
  writeFileSync(
    path,
    `#!/bin/sh
echo "$*" >> "$0.calls"
[ "$(/usr/bin/wc -l < "$0.calls")" -gt ${calls} ] || { echo "${says}" >&2; exit 1; }
`,
  )
  chmodSync(path, 0o755)
  const { PATH } = process.env
  t.teardown(() => {
    process.env.PATH = PATH
  })
  process.env.PATH = join(path, '..')
  return () => readFileSync(`${path}.calls`, 'utf8').trim().split('\n').length
}

t.test('a thread that ends while the threads are gone over ends no run', async (t) => {
  const calls = failingFirst(t, 2, "taskset: failed to set pid 5's affinity: No such process")
  await keepOn('0', 5)
  t.equal(calls(), 3)
})

t.test('what fails for another reason fails at once', async (t) => {
  const calls = failingFirst(t, 2, "taskset: failed to set pid 5's affinity: Operation not permitted")
  await t.rejects(keepOn('0', 5), { message: /not permitted/ })
  t.equal(calls(), 1)
})
