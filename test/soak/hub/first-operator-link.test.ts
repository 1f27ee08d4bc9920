import { spawn } from 'node:child_process'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { compiledServer } from '../../compiled-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'

/* The link with which a new node gets its first operator is a secret (docs/operators.md, "The first operator"). */

const link = /^https:\/\/localhost:\d+\/console\/first#token=[\w-]{43}$/

t.test('where the output is kept, the link is in a file that only its user can read', async (t) => {
  const home = await temporaryDirectory(t)
  const hub = await spawnHub(t, home)
  const file = join(home, 'data', 'first-operator')
  const told = () => hub.lines.filter(({ msg }) => msg === 'the link for the first operator is in a file')
  // The two outputs of a process come in any order.
  await until(() => hub.errors().includes(file) && told().length > 0)
  t.notMatch(hub.errors() + JSON.stringify(hub.lines), /#token=/)
  t.match(told(), [{ file }])
  t.match((await readFile(file, 'utf8')).trim(), link)
  t.equal((await stat(file)).mode & 0o777, 0o600)
  await hub.stop('SIGTERM')
  await t.rejects(stat(file), { code: 'ENOENT' }, 'the link ends with the node, and its file with it')
})

t.test('a node goes on when the file of the link cannot be written', async (t) => {
  const home = await temporaryDirectory(t)
  await mkdir(join(home, 'data', 'first-operator'), { recursive: true })
  const hub = await spawnHub(t, home)
  const told = () =>
    hub.lines.filter(({ msg }) => msg === 'the link for the first operator cannot be written')
  await until(() => hub.errors().includes('--help') && told().length > 0)
  t.match(told(), [{ level: 50, file: join(home, 'data', 'first-operator') }])
  t.notMatch(hub.errors() + JSON.stringify(hub.lines), /#token=|first-operator'?\n/)
  t.equal(await hub.stop('SIGTERM'), 0)
})

t.test('a terminal shows the link, and no file has it', async (t) => {
  const home = await temporaryDirectory(t)
  const command = `exec ${process.execPath} ${await compiledServer()}`
  const env = {
    PATH: process.env.PATH,
    SHELL: '/bin/sh',
    HUB_DATA_DIR: join(home, 'data'),
    HUB_MQTT_PORT: '0',
    HUB_HTTPS_PORT: '0',
  }
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit']
  const terminal = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    cwd: home,
    env,
    stdio,
  })
  t.teardown(() => terminal.kill('SIGTERM'))
  let shown = ''
  terminal.stdout.on('data', (chunk) => {
    shown += chunk
  })
  await until(() => shown.includes('hubctl') && shown.includes('--help'))
  t.match(shown, /# https:\/\/localhost:\d+\/console\/first#token=[\w-]{43}/)
  await t.rejects(stat(join(home, 'data', 'first-operator')), { code: 'ENOENT' })
})
