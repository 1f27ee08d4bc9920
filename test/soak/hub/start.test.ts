import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { connect } from '../../clients.ts'
import { compiledServer } from '../../compiled-server.ts'
import { freePort } from '../../free-port.ts'
import { projectFile, root } from '../../root.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, type Issued, startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { onStore } from '../../stores.ts'

/** Root may write everywhere. Of a node that is started as root, this takes the right away. */
const withoutRights = process.getuid?.() === 0 ? ['setpriv', '--bounding-set', '-dac_override'] : []

t.test('who asks the program something gets an answer, and no node', async (t) => {
  const { version } = JSON.parse(await readFile(projectFile('package.json'), 'utf8'))
  const home = await temporaryDirectory(t)
  const server = await compiledServer()
  const hub = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [server, ...args], {
      cwd: home,
      env: { PATH: process.env.PATH, HUB_DATA_DIR: join(home, 'data'), HUB_MQTT_PORT: 'wrong' },
      encoding: 'utf8',
    })
    return { status, stdout, stderr }
  }
  t.match(hub('--help'), { status: 0, stdout: /^Usage: hub /, stderr: '' })
  t.strictSame(hub('--version'), { status: 0, stdout: `${version}\n`, stderr: '' })
  const refusal = 'hub: unknown argument "--prot": add --help to see how a node is started\n'
  t.strictSame(hub('--prot', '--help'), { status: 2, stdout: '', stderr: refusal })
  t.match(hub('start'), { status: 2, stdout: '', stderr: /^hub: unknown argument "start".*\n$/ })
  t.match(hub(''), { status: 2, stdout: '' })
  const npm = spawnSync('npm', ['start', '--silent', '--', '--version'], {
    cwd: root,
    encoding: 'utf8',
  })
  t.match(npm, { status: 0, stdout: `${version}\n` })
  t.notOk(existsSync(join(home, 'data')), 'nothing was made')
})

t.test('SIGTERM to npm start stops the node behind it', async (t) => {
  const home = await temporaryDirectory(t)
  const npm = spawn('npm', ['start', '--silent'], {
    cwd: root,
    env: { ...process.env, HUB_DATA_DIR: join(home, 'data'), HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const messages: unknown[] = []
  for await (const line of createInterface({ input: npm.stdout })) {
    const { msg } = JSON.parse(line)
    messages.push(msg)
    if (msg === 'hub ready') npm.kill('SIGTERM')
  }
  // The end of the output means that the node has ended too.
  if (npm.exitCode === null && npm.signalCode === null) await once(npm, 'exit')
  t.ok(messages.includes('stopping'))
})

t.test('SIGTERM ends a node that is starting, before it lets a client in', async (t) => {
  const home = await temporaryDirectory(t)
  // The silent server keeps the node waiting for its feed.
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const node = await startProcess(home, { HUB_FEED: `https://127.0.0.1:${port}/feed.json` })
  await once(silent, 'connection')
  node.child.kill('SIGTERM')
  const { code, messages, errors } = await node.ended
  t.strictSame([code, errors], [0, ''])
  t.ok(messages.includes('stopping') && !messages.includes('hub ready'), messages.join(', '))
  t.notOk(existsSync(join(home, 'data', 'admin.sock')))
})

t.test('a node whose terminal is closed (SIGHUP) stops as after SIGTERM', async (t) => {
  const home = await temporaryDirectory(t)
  const hub = await spawnHub(t, home)
  t.equal(await hub.stop('SIGHUP'), 0)
  t.ok(hub.messages.includes('stopping'))
  t.notOk(existsSync(join(home, 'data', 'admin.sock')))
})

t.test('SIGTERM is handled before the hub is loaded', async (t) => {
  const home = await temporaryDirectory(t)
  const atOnce = `process.on('newListener', (name) => name === 'SIGTERM' && process.kill(process.pid, name))`
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(atOnce)}`
  const { code, messages, errors } = await (await startProcess(home, { NODE_OPTIONS })).ended
  t.strictSame([code, errors, messages], [0, '', ['stopping']])
  t.notOk(existsSync(join(home, 'data')), 'nothing was made')
})

t.test('a node that cannot start names the setting, its value and what was expected', async (t) => {
  const { httpsPort, mqttPort, caPath } = await startTestHub(t)
  const missing = '/nowhere/file.pem'
  const home = await temporaryDirectory(t)
  const noCa = join(home, 'text.pem')
  await writeFile(noCa, 'root:x:0:0:root:/root:/bin/bash\n')
  const brokenCa = join(home, 'broken.pem')
  const certificate = await readFile(caPath, 'utf8')
  await writeFile(brokenCa, certificate + certificate.slice(0, -200))
  const cases: [Record<string, string>, string][] = [
    [
      { HUB_HTTPS_PORT: `${httpsPort}` },
      `HUB_HTTPS_PORT: ${httpsPort}, expected a port that is free: listen EADDRINUSE`,
    ],
    [
      { HUB_MQTT_PORT: `${mqttPort}` },
      `HUB_MQTT_PORT: ${mqttPort}, expected a port that is free: listen EADDRINUSE`,
    ],
    [
      { HUB_HOST: '192.0.2.1' },
      'HUB_HOST: "192.0.2.1", expected an address of this machine: listen EADDRNOTAVAIL',
    ],
    [{ HUB_HOST: 'fe80::1' }, 'HUB_HOST: "fe80::1", expected an address of this machine: listen E'],
    [
      { HUB_TLS_CERT: missing, HUB_TLS_KEY: missing },
      `HUB_TLS_CERT: "${missing}", expected a certificate in PEM, and in HUB_TLS_KEY its key: cannot read`,
    ],
    [{ HUB_TLS_CA: missing }, `HUB_TLS_CA: "${missing}", expected a certificate in PEM: ENOENT`],
    [{ HUB_PUSH_CA: missing }, `HUB_PUSH_CA: "${missing}", expected a certificate in PEM: ENOENT`],
    ...['HUB_TLS_CA', 'HUB_PUSH_CA'].flatMap((name): [Record<string, string>, string][] => [
      [{ [name]: noCa }, `${name}: "${noCa}", expected a certificate in PEM: it has none`],
      [
        { [name]: brokenCa },
        `${name}: "${brokenCa}", expected a certificate in PEM: certificate 2 of 2 is broken`,
      ],
    ]),
    [
      { HUB_DATA_DIR: '/dev/null' },
      'HUB_DATA_DIR: "/dev/null", expected a directory that the node may write to: EEXIST',
    ],
    [
      { HUB_REDIS_URL: 'redis://hub:secret@127.0.0.1:1', HUB_PUBLIC_URL: 'https://hub.example' },
      'HUB_REDIS_URL: "redis://***@127.0.0.1:1", expected a Redis that answers: the Redis on 127.0.0.1:1 cannot be used: ',
    ],
  ]
  for (const [env, said] of cases) {
    const failure = await spawnHub(t, home, env).then(
      () => '',
      ({ message }) => String(message),
    )
    t.ok(failure.includes(`ended with 1: the hub cannot start: ${said}`), `${said} | ${failure}`)
    t.equal(failure.trim().split('\n').length, 1, 'one line')
  }
})

t.test('a data directory that the node may not write to is named', async (t) => {
  const home = await temporaryDirectory(t)
  const dataDir = join(home, 'data')
  await mkdir(dataDir, { mode: 0o500 })
  const [program = '', ...args] = [...withoutRights, process.execPath, await compiledServer()]
  const env = { PATH: process.env.PATH, HUB_DATA_DIR: dataDir, HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0' }
  const { status, stderr } = spawnSync(program, args, { cwd: home, env, encoding: 'utf8' })
  const named = `HUB_DATA_DIR: "${dataDir}", expected a directory that the node may write to: EACCES`
  t.ok(stderr.startsWith(`the hub cannot start: ${named}`), stderr)
  t.equal(status, 1)
})

t.test('where the admin socket cannot be removed, all other parts of the node end', async (t) => {
  const home = await temporaryDirectory(t)
  const program = join(home, 'node.sh')
  const command = [...withoutRights, process.execPath].map((word) => `'${word}'`).join(' ')
  await writeFile(program, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o700 })
  const hub = await spawnHub(t, home, {}, { node: program })
  const login = await askNode<Issued>(hub.adminSocket, 'credentials.add', {
    role: 'subscriber',
    label: 'app',
    filters: ['radio/#'],
  })
  await connect(t, hub, login)
  await chmod(join(home, 'data'), 0o500)
  t.equal(await hub.stop('SIGTERM'), 1)
  t.match(hub.messages.at(-1), /^stopped with an error: EACCES: .*admin\.sock/)
  await chmod(join(home, 'data'), 0o700)
  const again = await startTestHub(t, {}, home)
  const [{ lastUsedAt } = {}] = await again.ask<{ lastUsedAt: string | null }[]>('credentials.list')
  t.match(lastUsedAt, /^20/, 'the log-in was stored at the end')
})

t.test('a node that wants PROXY headers prints no commands to paste', async (t) => {
  const alone = await spawnHub(t, await temporaryDirectory(t))
  await alone.stop('SIGTERM')
  t.match(alone.errors(), /mosquitto_sub/)
  const balanced = await spawnHub(t, await temporaryDirectory(t), { HUB_PROXY_PROTOCOL: 'true' })
  await balanced.stop('SIGTERM')
  t.equal(balanced.errors(), '')
})

t.test('a node that cannot start leaves nothing open', async (t) => {
  const other = await startTestHub(t)
  const httpsPort = await freePort()
  const env = { HUB_HTTPS_PORT: `${httpsPort}` }
  const home = await temporaryDirectory(t)
  await t.rejects(startTestHub(t, { ...env, HUB_MQTT_PORT: `${other.mqttPort}` }, home), {
    message: /HUB_MQTT_PORT/,
  })
  const hub = await startTestHub(t, env, home)
  t.equal(hub.httpsPort, httpsPort, 'the data directory and the port are free')
})

onStore(
  'redis',
  'a second process with the data directory of a node leaves the node alone',
  async (t, store) => {
    const first = await startTestHub(t, store)
    const idOf = () => readFile(join(first.home, 'data', 'node'), 'utf8')
    const id = await idOf()
    await t.rejects(startTestHub(t, store, first.home), {
      message: `another node is running on the admin socket ${first.adminSocket}`,
    })
    t.equal(await idOf(), id)
    await first.subscriber('radio/#')
    t.notOk(first.lines.some(({ msg }) => msg === 'the other nodes took this one for dead'))
  },
)

/** Starts a node as a separate process. `ended` resolves with its exit code and output. */
async function startProcess(home: string, settings: Record<string, string>) {
  const free = { HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0' }
  const env = { PATH: process.env.PATH, HUB_DATA_DIR: join(home, 'data'), ...free, ...settings }
  const child = spawn(process.execPath, [await compiledServer()], { cwd: home, env, stdio: 'pipe' })
  const [output, errors, closed] = [text(child.stdout), text(child.stderr), once(child, 'close')]
  const ended = async () => {
    const [code] = await closed
    const lines = (await output).split('\n').filter(Boolean)
    return { code, messages: lines.map((line): string => JSON.parse(line).msg), errors: await errors }
  }
  return { child, ended: ended() }
}
