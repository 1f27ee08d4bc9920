import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { commandOf, root } from '../../root.ts'

t.test('bench/touched.ts lists the files that an event at QoS 1 passes', async (t) => {
  const [command = '', ...words] = commandOf('bench/touched.ts')
  const { stdout } = await promisify(execFile)(command, words, { cwd: root })
  const files = stdout.trim().split('\n').slice(0, -2)
  for (const step of ['broker/publish.ts: ', 'validator/decide.ts: ', 'journal/journal.ts: ']) {
    t.ok(
      files.some((line) => line.startsWith(step)),
      step,
    )
  }
})
