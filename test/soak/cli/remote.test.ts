import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { runHubctl } from '../../cli/run-hubctl.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { hubctlCommand } from '../../root.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * hubctl on another machine than the node: over HTTPS, as a user with the permission `operate` (design.md §4).
 */
const [own = ''] = institutions

t.test('who has logged in once asks the hub from then on, with every command', async (t) => {
  const { hub, api, url, email, hubctl, kept } = await start(t)
  t.match(await hubctl(['status']), {
    code: 1,
    stderr: `hubctl: you are not logged in at ${url}: hubctl login --url ${url}\n`,
  })
  const login = await hubctl(['login', '--ca', hub.caPath], `${email}\n${password}\n`)
  t.same(login, { code: 0, stdout: `Logged in as ${email} at ${url}.\n`, stderr: '' })

  t.match(JSON.parse((await hubctl(['status', '--json'])).stdout), { stage: 'test', store: { ok: true } })
  const add = ['credentials', 'add', '--role', 'publisher', '--label', 'kw1', '--institution', own]
  const added = JSON.parse((await hubctl([...add, '--json'])).stdout)
  t.match(added, { username: /^pub-kw1-/, password: /.{40}/ })
  t.match((await hubctl(['credentials', 'list'])).stdout, added.username)
  const env = { HUBCTL_URL: url }
  t.match(await runHubctl(['credentials', 'show', added.username], { env: { ...env, ...kept.env } }), {
    code: 0,
  })
  t.match(await hub.ask('audit'), [{}, { who: email, action: 'credentials.add', target: added.username }])

  const [name = '', ...others] = await readdir(kept.directory)
  t.same(others, [])
  t.equal((await stat(kept.directory)).mode & 0o777, 0o700)
  t.equal((await stat(join(kept.directory, name))).mode & 0o777, 0o600)
  t.notMatch(await readFile(join(kept.directory, name), 'utf8'), password)

  const keptToken = async () => JSON.parse(await readFile(join(kept.directory, name), 'utf8')).token
  const statusOf = async (token: string) =>
    (await api.call('POST', '/operate/status', { token, body: {} })).status
  const former = await keptToken()
  t.equal(await statusOf(former), 200)
  await hubctl(['login', '--ca', hub.caPath], `${email}\n${password}\n`)
  t.equal(await statusOf(former), 403, 'a new log-in ends the former one')
  const copy = await keptToken()
  await writeFile(join(kept.directory, `${name}.4711`), 'a draft of a killed command')
  t.match(await hubctl(['logout']), { code: 0, stdout: `Logged out at ${url}.\n` })
  t.same(await readdir(kept.directory), [])
  t.equal(await statusOf(copy), 403, 'a copy of the tokens is void')
  t.match(await hubctl(['logout', '--json']), { code: 0, stdout: /"loggedOut": false/ })
  t.match(JSON.parse((await hubctl(['status', '--json'])).stdout), { error: { code: 'login.missing' } })
})

t.test('what goes wrong is said in one line', async (t) => {
  const { hub, api, url, email, hubctl, kept } = await start(t)
  const publisher = await addUser(hub, api, own, { permissions: ['publish'] })
  const inTrust = ['--ca', hub.caPath]
  for (const [argv, stdin, code, message] of [
    [
      ['login'],
      `${email}\n${password}\n`,
      1,
      /^hubctl: the certificate of https:\S+ is not trusted: .*--ca FILE/,
    ],
    [['login', ...inTrust], `${email}\nwrong password\n`, 1, /the e-mail address or the password is wrong/],
    [['login', ...inTrust, '--email', publisher.email], password, 1, /lacks the permission operate/],
    [['login', ...inTrust], '', 2, /must be typed, or stand in lines/],
    [['login', '--ca', join(kept.env.XDG_CONFIG_HOME, 'none')], '', 2, /--ca cannot be read/],
    [['login', '--ca', notePath(kept)], '', 2, /file of a certificate in PEM/],
    [['status', '--url', 'https://localhost:1'], '', 1, /not logged in at https:\/\/localhost:1/],
    [
      ['login', '--url', 'https://localhost:1'],
      `${email}\n${password}\n`,
      1,
      /no hub answers at https:\/\/localhost:1: /,
    ],
    [
      ['status', '--url', 'http://localhost'],
      '',
      2,
      /such as https:\/\/hub\.example:8443, not "http:\/\/localhost"/,
    ],
    [['status', '--url', 'https://kim:secret@localhost'], '', 2, /not "…@localhost"/],
    [['status', '--url', 'https://kim:p@/ss@localhost/x'], '', 2, /not "…@localhost\/x"/],
    [['status', '--socket', 'x'], '', 2, /cannot be given together/],
  ] as const) {
    await writeFile(notePath(kept), 'no certificate')
    const { code: ended, stdout, stderr } = await hubctl(argv, stdin)
    t.equal(ended, code, `${argv.join(' ')} ${stderr}`)
    t.match(stderr, message)
    t.match(stderr, /^hubctl: [^\n]*\n$/, 'one line')
    t.equal(stdout, '')
  }
  t.same(await readdir(kept.directory).catch(() => []), [], 'nothing is kept of a log-in that failed')
  t.match(await runHubctl(['login'], { env: kept.env }), { code: 2, stderr: /--url or HUBCTL_URL/ })
  t.match(await runHubctl(['status', '--ca', 'x'], { env: kept.env }), {
    code: 2,
    stderr: /--ca is for --url/,
  })

  await hubctl(['login', ...inTrust], `${email}\n${password}\n`)
  t.match(await hubctl(['sessions', 'show', 'ghost']), {
    code: 1,
    stderr: 'hubctl: there is no session "ghost"\n',
  })
  await hub.ask('users.remove', { email })
  const expired = { code: 1, stderr: `hubctl: your log-in at ${url} has ended: hubctl login --url ${url}\n` }
  t.match(await hubctl(['status']), expired)
  await hub.close()
  t.match(await hubctl(['status']), { code: 1, stderr: /no hub answers at/ })
})

t.test('a token that has ended is exchanged', async (t) => {
  const { hub, email, hubctl, kept } = await start(t)
  await hubctl(['login', '--ca', hub.caPath], `${email}\n${password}\n`)
  const [name = ''] = await readdir(kept.directory)
  const path = join(kept.directory, name)
  const first = JSON.parse(await readFile(path, 'utf8'))
  // First, hubctl sees that the token has expired. Then, the token looks valid, but the hub refuses it.
  for (const changed of [{ expires: new Date().toISOString() }, { token: 'x' }]) {
    await writeFile(path, JSON.stringify({ ...first, ...changed }))
    t.match(await hubctl(['status']), { code: 0 })
    const second = JSON.parse(await readFile(path, 'utf8'))
    t.not(second.token, first.token)
    t.ok(Date.parse(second.expires) > Date.now() + 3_000_000)
    t.match(await hubctl(['status']), { code: 0 })
  }
})

t.test('operators log in as long as there is a hub, also when the track of publishers is gone', async (t) => {
  const { hub, email, hubctl, kept } = await start(t)
  await hub.ask('lifecycle.announce', {
    track: 'publish',
    sunset: '2020-01-01',
    link: 'https://hub.example/',
  })
  await hub.ask('lifecycle.retire', { track: 'publish' })
  const login = ['login', '--ca', hub.caPath]
  t.match(await hubctl(login, `${email}\n${password}\n`), { code: 0 })
  const [name = ''] = await readdir(kept.directory)
  const path = join(kept.directory, name)
  const first = JSON.parse(await readFile(path, 'utf8'))
  await writeFile(path, JSON.stringify({ ...first, token: 'x' }))
  t.match(await hubctl(['status']), { code: 0 }, 'and their log-in is renewed')
})

t.test('a log-in file that cannot be used is named in one line', async (t) => {
  const { hub, email, hubctl, kept } = await start(t)
  const { XDG_CONFIG_HOME: home = '' } = kept.env
  await writeFile(join(home, 'hubctl'), 'a file in place of the directory')
  const login = await hubctl(['login', '--json', '--ca', hub.caPath], `${email}\n${password}\n`)
  t.match(login, { code: 1, stderr: '' })
  t.match(JSON.parse(login.stdout), { error: { code: 'internal', message: join(home, 'hubctl') } })
  t.match(await hubctl(['status']), { code: 1, stderr: /^hubctl: ENOTDIR: .*\n$/ })
})

t.test('what cannot be undone needs --yes where nobody can be asked', async (t) => {
  const { hub, email, hubctl } = await start(t)
  await hubctl(['login', '--ca', hub.caPath], `${email}\n${password}\n`)
  const [one, two] = [await hub.publisher([own]), await hub.publisher([own])]
  const refused = await hubctl(['credentials', 'revoke', one.username])
  t.match(refused, {
    code: 2,
    stderr: 'hubctl: hubctl credentials revoke cannot be undone, and nobody can be asked: add --yes\n',
  })
  t.equal((await hub.ask<object[]>('credentials.list')).length, 2)
  t.match(await hubctl(['credentials', 'revoke', one.username, '--yes']), { code: 0, stdout: /^Revoked/ })
  const onSocket = ['credentials', 'revoke', two.username, '--socket', hub.adminSocket]
  t.match(
    await runHubctl(onSocket),
    { code: 0, stdout: /^Revoked/ },
    'scripts on the machine of the node go on',
  )
})

t.test('a person is asked, on the socket as well', async (t) => {
  const { hub } = await start(t)
  const { username } = await hub.publisher([own])
  const socket = ['--socket', hub.adminSocket]
  for (const [answer, code, left] of [
    ['n', 1, 1],
    ['y', 0, 0],
  ] as const) {
    const revoked = await atTerminal(['credentials', 'revoke', username, ...socket], [['(y/N)', answer]])
    t.equal(revoked.code, code, revoked.shown)
    t.match(revoked.shown, /disconnect everybody who uses it\.\r\nThis cannot be undone\. Go on\? \(y\/N\)/)
    t.equal((await hub.ask<object[]>('credentials.list')).length, left)
  }
  const rotated = await atTerminal(['keys', 'rotate', '--drop-old', ...socket], [['(y/N)', 'n']])
  t.match(rotated.shown, /keys rotate --drop-old: .*everybody logs in again\.\r\n/, 'what is lost')
  const dropped = await atTerminal(['sessions', 'drop', 'a\nb', ...socket], [['(y/N)', 'n']])
  t.match(dropped.shown, 'sessions drop a\\x0ab: ', 'an argument adds no line')
})

t.test('a password is typed or pasted on the terminal, and not shown', async (t) => {
  const { hub, url, email, kept } = await start(t)
  const argv = ['login', '--url', url, '--ca', hub.caPath]
  const typed = [
    ['E-mail address: ', email],
    ['Password: ', password],
  ] as const
  const pasted = [['E-mail address: ', `${email}\n${password}`]] as const
  for (const answers of [typed, pasted]) {
    const { code, shown } = await atTerminal(argv, answers, kept.env)
    t.equal(code, 0, shown)
    t.match(shown, `Logged in as ${email}`)
    t.notMatch(shown, password)
  }
  const { code, shown } = await atTerminal([...argv, '--json'], [], kept.env, '2>/dev/null')
  t.equal(code, 2, 'where no question can be seen, a password would be')
  t.match(JSON.parse(shown), { error: { code: 'usage', message: /standard error/ } })
})

t.test('events are followed from elsewhere', async (t) => {
  const { hub, email, hubctl, url, kept } = await start(t)
  await hubctl(['login', '--ca', hub.caPath], `${email}\n${password}\n`)
  const [program = '', ...entry] = hubctlCommand
  const tail = spawn(program, [...entry, 'events', 'tail', '--url', url, '--json'], {
    env: { ...process.env, ...kept.env },
  })
  t.teardown(() => tail.kill())
  const lines = createInterface({ input: tail.stdout })[Symbol.asyncIterator]()
  // Wait for the request of `events tail`: earlier events would be missing.
  await hub.until(async () => hub.lines.some(({ path }) => path === '/operate/events.tail'))
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  await studio.publish(playing(station(), { title: 'One' }))
  await studio.publish(playing(station(), { title: 'Two' }))
  t.match(JSON.parse((await lines.next()).value), { title: 'One', outcome: 'published' })
  t.match(JSON.parse((await lines.next()).value), { title: 'Two' })
  await hub.close()
  t.match(JSON.parse((await lines.next()).value), { error: { code: 'node.unreachable' } })
})

t.test('the packets of a client are seen from elsewhere, as one answer', async (t) => {
  const { hub, email, hubctl } = await start(t)
  await hubctl(['login', '--ca', hub.caPath], `${email}\n${password}\n`)
  await connect(t, hub, await hub.subscriber('radio/#'), { clientId: 'player' })
  const { code, stdout } = await hubctl(['trace', 'player', '--for', '1s', '--json'])
  t.equal(code, 0)
  t.same(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).what),
    ['trace', 'open', 'over'],
  )
  t.match(await hubctl(['trace', 'player', '--for', '30s']), { code: 1, stderr: /at most 20 seconds/ })
})

async function start(t: Test) {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { email } = await addUser(hub, api, own, { permissions: ['operate'] })
  const url = `https://localhost:${hub.httpsPort}`
  const home = await temporaryDirectory(t)
  const kept = { env: { XDG_CONFIG_HOME: home }, directory: join(home, 'hubctl') }
  const hubctl = (argv: readonly string[], stdin = '') =>
    runHubctl([...(argv.includes('--url') ? [] : ['--url', url]), ...argv], { stdin, env: kept.env })
  return { hub, api, url, email, hubctl, kept }
}

function notePath(kept: { env: { XDG_CONFIG_HOME: string } }): string {
  return join(kept.env.XDG_CONFIG_HOME, 'note')
}

/** Runs hubctl at a terminal, and types each answer when its question is shown. */
async function atTerminal(
  argv: readonly string[],
  answers: readonly (readonly [question: string, answer: string])[],
  env: Record<string, string> = {},
  redirected = '',
) {
  const words = [...hubctlCommand, ...argv].map((word) => `'${word}'`).join(' ')
  const terminal = spawn('script', ['-qec', `${words} ${redirected}`, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  const left = [...answers]
  let shown = ''
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    const [question, answer] = left[0] ?? []
    if (question === undefined || !shown.includes(question)) return
    left.shift()
    terminal.stdin.write(`${answer}\n`)
  })
  const [code] = await once(terminal, 'close')
  return { code, shown }
}
