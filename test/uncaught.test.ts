import { execFile } from 'node:child_process'
import t from 'tap'
import { commandOf } from './root.ts'

t.test('an error that nobody catches fails the test that runs, and the next one begins', async (t) => {
  const { code, output } = await run('test/uncaught-errors.ts')
  t.equal(code, 1)
  t.match(output, /^ {8}not ok 1 - rejected\n(.*\n)*? {4}not ok 1 - a rejection/m)
  t.match(output, /^ {8}not ok 1 - thrown\n(.*\n)*? {4}not ok 2 - an error of a timer/m)
  t.match(output, /^ {4}ok 3 - after it/m)
  t.match(output, /^ok 1 - one that passes.*\n(.*\n)*?not ok 2 - around/m)
})

function run(program: string): Promise<{ code: number; output: string }> {
  const [command = '', ...words] = commandOf(program)
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TAP')))
  return new Promise((resolve) => {
    execFile(command, words, { env }, (error, output) => resolve({ code: Number(error?.code ?? 0), output }))
  })
}
