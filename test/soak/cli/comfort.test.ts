import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import t from 'tap'
import { runHubctl } from '../../cli/run-hubctl.ts'
import { institutions } from '../../events.ts'
import { commandOf } from '../../root.ts'
import { startTestHub } from '../../start-hub.ts'

const run = promisify(execFile)
const [own = ''] = institutions

t.test('what is typed can be completed', async (t) => {
  const { stdout: script } = await runHubctl(['completion', 'bash'])
  const complete = async (...words: string[]) => {
    const typed = words.map((word) => `'${word}'`).join(' ')
    const ask = `COMP_WORDS=(hubctl ${typed}); COMP_CWORD=${words.length}; _hubctl; echo "\${COMPREPLY[*]}"`
    return (await run('bash', ['-c', `${script}\n${ask}`])).stdout.trim().split(' ')
  }
  t.same(await complete('cred'), ['credentials'])
  t.same((await complete('credentials', 'r')).sort(), ['revoke', 'rotate'])
  t.same(await complete('credentials', 'add', '--ro'), ['--role'])
  t.same(
    await complete('--url', 'https://hub.example', 'queues', 'd'),
    ['dead-letters'],
    'an option has a value',
  )
  t.same(await complete('queues', 'replay', 'x', '--si'), ['--since'], 'behind an argument')
  t.same(await complete('completion', 'z'), ['zsh'])
  t.match((await runHubctl(['completion', 'zsh'])).stdout, /^#compdef hubctl\n/)
  t.match(
    (await runHubctl(['completion', 'fish'])).stdout,
    /^complete -c hubctl .*-a 'add list show rotate revoke'$/m,
  )
  t.match(await runHubctl(['completion', 'tcsh']), { code: 2, stderr: /"tcsh": bash, zsh or fish/ })
})

t.test('with --watch the answer comes again and again', async (t) => {
  const hub = await startTestHub(t)
  const [program = '', ...entry] = commandOf('cli/hubctl.ts')
  const argv = ['credentials', 'list', '--watch', '--json', '--socket', hub.adminSocket]
  const watching = spawn(program, [...entry, ...argv])
  t.teardown(() => watching.kill())
  const lines = createInterface({ input: watching.stdout })[Symbol.asyncIterator]()
  t.same(JSON.parse((await lines.next()).value), [])
  const { username } = await hub.publisher([own])
  let last: unknown[] = []
  while (last.length === 0) last = JSON.parse((await lines.next()).value)
  t.match(last, [{ username }])
  const wrong = await runHubctl(['credentials', 'revoke', username, '--watch', '--socket', hub.adminSocket])
  t.match(wrong, { code: 2, stderr: /--watch is for what only reads/ })
  watching.kill()
  await once(watching, 'close')
})
