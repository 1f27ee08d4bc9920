import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { commandOf } from './root.ts'

const passes = "import t from 'tap'; t.pass('the sun rises')"
// With Node 26, tap itself sets `--no-warnings` for processes that its test starts.
const isPlain = 'process.execArgv.length === 0 && !/import|loader/.test(process.env.NODE_OPTIONS)'

t.test('prints a line for each file that passes, and the totals', async (t) => {
  const folder = t.testdir({
    inner: { 'passes.test.js': passes },
    'other.js': 'throw new Error()',
    'plain.test.js': `import t from 'tap'; t.ok(${isPlain}, 'without loaders')`,
  })
  const { code, output } = await run([folder], { TEST_OUTPUT: `${folder}/all.tap` })
  t.equal(code, 0)
  t.match(output, /^ok 1 - .*inner\/passes\.test\.js #.*\nok 2 - .*\/plain\.test\.js #/)
  t.match(output, '# { total: 2, pass: 2 }')
  t.notMatch(output, 'the sun rises')
  t.match(
    readFileSync(`${folder}/all.tap`, 'utf8'),
    '    ok 1 - the sun rises\n',
    'TEST_OUTPUT is the whole TAP',
  )
})

t.test('shows why something failed, and runs the others', async (t) => {
  const folder = t.testdir({
    'killed.test.js': `${passes}; process.kill(process.pid, 'SIGKILL')`,
    'passes.test.js': passes,
    'skipped.test.js': "import t from 'tap'; t.test('of the moon', { skip: 'no moon' }, async () => {})",
    'wrong.test.js': "import t from 'tap'; t.test('sums', async (t) => t.equal(1 + 1, 3, 'are right'))",
  })
  const { code, output } = await run([folder], { TAP_FAIL_SKIP: '1' })
  t.equal(code, 1)
  t.match(output, /^not ok 1 - .*killed\.test\.js.*\n +---\n(.*\n)*? +signal: SIGKILL\n/m)
  t.match(output, /^ok 2 - .*passes\.test\.js/m)
  t.match(output, /^ +not ok 1 - of the moon\n +---\n +failedSkip: no moon\n/m)
  t.match(output, /^not ok 3 - .*skipped\.test\.js/m)
  t.match(output, /^ +not ok 1 - are right\n +---\n(.*\n)*? +-3\n +\+2\n/m)
  t.match(output, /^not ok 4 - .*wrong\.test\.js/m)
})

t.test('names the place in the source of a bundled test', async (t) => {
  const bundled = `import t from 'tap'\n\nt.equal(1 + 1, 3)\n//# sourceMappingURL=wrong.test.js.map`
  const map = { version: 3, sources: ['sums.test.ts'], names: [], mappings: ';;AAKE' }
  const folder = t.testdir({ 'wrong.test.js': bundled, 'wrong.test.js.map': JSON.stringify(map) })
  const { output } = await run([folder])
  t.match(output, /^ +stack: \|\n +\S*sums\.test\.ts:6:3$/m)
})

t.test('finds fault with a folder without tests', async (t) => {
  t.equal((await run([t.testdir({ 'a.js': passes })])).code, 1)
})

/** Runs tests without the variables that the runner of this test has set. */
function run(paths: string[], variables = {}): Promise<{ code: number; output: string }> {
  const [command = '', ...words] = commandOf('test/run.ts')
  const inherited = Object.entries(process.env).filter(([name]) => !/^(TAP|TEST_OUTPUT)/.test(name))
  const env = { ...Object.fromEntries(inherited), ...variables }
  return new Promise((resolve) => {
    execFile(command, [...words, ...paths], { env }, (error, output) => {
      resolve({ code: Number(error?.code ?? 0), output })
    })
  })
}
