import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { call } from '../cli/connection.ts'
import { addUser, openApi } from './bridge-https/api.ts'
import { projectFile } from './root.ts'
import { spawnHub } from './spawn-hub.ts'
import { askNode } from './start-hub.ts'
import { words } from './words.ts'

/*
 * What a person can name is declared once: each patch of test/one-row/ adds one file, or lines to one file, and the hub
 * of a copy of the project then knows the new thing everywhere.
 */

const run = promisify(execFile)
/** What the copy has no use for: what is made, and what other tests leave behind. */
const unneeded = new Set(words(`.git .tap .compiled .prof dist node_modules images former-release`))
const copy = await mkdtemp(join(tmpdir(), 'hub-one-row-'))
t.teardown(() => rm(copy, { recursive: true, force: true }))
await cp(projectFile(''), copy, { recursive: true, filter: (path) => !unneeded.has(basename(path)) })
await symlink(projectFile('node_modules'), join(copy, 'node_modules'))
const patches = (await readdir(projectFile('test/one-row'))).map((name) =>
  projectFile(`test/one-row/${name}`),
)
for (const patch of patches) await run('git', ['apply', patch], { cwd: copy, env: outsideOfGit() })

const docs = (...args: string[]) => inCopy(['--import=tsx', 'reference/write.ts', ...args])
const [missed, written] = [await docs('--check'), await docs()]
// The reference pages come first: the libraries of clients are among them.
await run(process.execPath, ['--import=tsx', 'test/compile.ts'], { cwd: copy })
const hub = await spawnHub(t, copy, { HUB_ONE_ROW: '12' }, { server: join(copy, '.compiled/server.js') })

t.test('a patch touches one file, and only adds to it', async (t) => {
  for (const patch of patches) {
    const { stdout } = await run('git', ['apply', '--numstat', patch], { cwd: copy, env: outsideOfGit() })
    t.match(stdout, /^\d+\t0\t[^\n]+\n$/, basename(patch))
  }
})

t.test('npm run check misses the reference pages until npm run docs has written them', async (t) => {
  t.match(missed, {
    code: 1,
    stderr: /docs\/reference\/settings\.md is not what the tables say/,
  })
  t.match(written, { code: 0 })
})

t.test('a setting: its page, its tests, its check, and hubctl config', async (t) => {
  const page = await readFile(join(copy, 'docs/reference/settings.md'), 'utf8')
  t.match(page, '| `HUB_ONE_ROW` | `7` | a whole number, 0 or greater | ')
  const [tests, refused, { stdout }] = await Promise.all([
    inCopy(['.compiled/test/config/config.test.js']),
    inCopy(['.compiled/server.js'], { HUB_ONE_ROW: 'x' }),
    hubctl('config', '--json'),
  ])
  t.match(tests, { code: 0, stdout: /# \{ total: / })
  t.match(refused, { code: 1, stderr: /HUB_ONE_ROW: "x", expected a whole number, 0 or greater/ })
  t.match(JSON.parse(stdout), { oneRow: 12 })
})

t.test('a command: at every door, in the help and the completion, in the descriptions', async (t) => {
  const [said, help, completion, socket] = await Promise.all([
    hubctl('echo', 'hello', '--json'),
    hubctl('echo', '--help'),
    hubctl('completion', 'bash'),
    call(hub.adminSocket, 'echo', { text: 'hello' }, 'kim'),
  ])
  t.strictSame(JSON.parse(said.stdout), { text: 'hello' })
  t.match(help.stdout, /^Usage: hubctl echo [^\n]*<text>\n\nsay a text again\n/)
  t.match(completion.stdout, /\becho\b/)
  t.strictSame(socket, { result: { text: 'hello' } })
  t.match(await call(hub.adminSocket, 'echo', {}, 'kim'), { error: { message: 'text must be a text' } })

  const api = await openApi(t, hub)
  const ask = <Result>(command: string, args?: Record<string, unknown>) =>
    askNode<Result>(hub.adminSocket, command, args ?? {})
  const { token } = await addUser({ ask }, api, 'urn:org:institution:a', { permissions: ['operate'] })
  t.match(await api.call('POST', '/operate/echo', { token, body: { text: 'hello' } }), {
    status: 200,
    json: { result: { text: 'hello' } },
  })
  t.match((await api.call('GET', '/openapi.json')).json, {
    paths: { '/operate/echo': { post: { summary: 'Say a text again' } } },
  })
  t.match(await readFile(join(copy, 'docs/reference/hubctl.md'), 'utf8'), /^## hubctl echo$/m)
})

t.test('a command: people read its answer, and the tests of all rows try its example', async (t) => {
  const [shown, wrong, tests] = await Promise.all([
    hubctl('echo', 'hello'),
    hubctl('echo', ''),
    inCopy(['.compiled/test/cli/typed/arguments.test.js']),
  ])
  t.strictSame(shown, { code: 0, stdout: 'text  hello\n', stderr: '' })
  t.match(wrong, { code: 2, stderr: 'hubctl: text must be a text, not ""\n' })
  t.match(tests, { code: 0, stdout: /hubctl echo sends the arguments of its example/ })
})

t.test('an event kind: its page, the libraries of clients, and its way to all who read', async (t) => {
  const name = 'de.org.hub.v1.radio.track.previous'
  for (const path of [
    'docs/reference/event-kinds.md',
    'client/events.ts',
    'client/python/now_playing_hub.py',
  ]) {
    t.ok((await readFile(join(copy, path), 'utf8')).includes(name), path)
  }
  const tests = ['.compiled/test/event/kind.test.js', '.compiled/test/event/every-kind.test.js']
  const results = await Promise.all(tests.map((test) => inCopy([test])))
  for (const result of results) t.match(result, { code: 0, stdout: new RegExp(`^ *ok \\d+ - ${name}`, 'm') })
})

function hubctl(...words: string[]) {
  return inCopy(['.compiled/hubctl.js', ...words, '--socket', hub.adminSocket])
}

/** Runs a program of the copy. Resolves also when the program fails. */
async function inCopy(args: readonly string[], env: Record<string, string> = {}) {
  const options = { cwd: copy, env: { PATH: process.env.PATH, ...env } }
  try {
    return { code: 0, ...(await run(process.execPath, args, options)) }
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string }
  }
}

/** `git apply` leaves files alone that a repository above the copy ignores. */
function outsideOfGit() {
  return { ...process.env, GIT_CEILING_DIRECTORIES: tmpdir() }
}
