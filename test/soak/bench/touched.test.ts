import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { projectFile, root } from '../../root.ts'

/** Whoever follows an event through the code opens this many files (`docs/decisions.md`). */
const maxFiles = 24

t.test('an event at QoS 1 passes few files on its way to a subscriber at QoS 0', async (t) => {
  // Not the compiled program: a bundle has no files.
  const command = ['--import=tsx', projectFile('bench/touched.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: root })
  const files = stdout.trim().split('\n').slice(0, -2)
  t.ok(files.length <= maxFiles, `${files.length} files:\n${files.join('\n')}`)
  for (const step of ['broker/publish.ts: ', 'validator/decide.ts: ', 'journal/journal.ts: ']) {
    t.ok(
      files.some((line) => line.startsWith(step)),
      step,
    )
  }
})
