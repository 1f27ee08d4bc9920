import { execFileSync } from 'node:child_process'
import { cp, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../../../certs/development.ts'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { startProgram } from '../../../documentation.ts'
import { institutions, playing, station } from '../../../events.ts'
import { freePort } from '../../../free-port.ts'
import { clockOf } from '../../../moving-clock.ts'
import { projectFile } from '../../../root.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { askNode, temporaryDirectory } from '../../../start-hub.ts'

/*
 * Rotates the signing key while receivers with common libraries and their defaults get pushes. They answer 204 to a
 * token that they cannot verify, as service.md §5.6 says, so the hub would not send the event again.
 */
const [own = ''] = institutions
const folder = projectFile('test/soak/delivery/webhook/receivers')
const leadMs = 600_000

const python = ['python3', '/usr/bin/python3'].find((program) =>
  works(program, ['-c', 'import cryptography, jwt']),
)
const go = {
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '/tmp',
  GO111MODULE: 'off',
  GOPATH: '/usr/share/gocode',
  GOFLAGS: '-mod=mod',
}
const hasGo = works('go', ['list', 'github.com/coreos/go-oidc'], go)

const receivers: { name: string; command: string[]; skip: string | boolean }[] = [
  ...['jose', 'jsonwebtoken', 'express'].map((name) => ({
    name,
    command: [process.execPath, `${name}.mjs`],
    skip: false,
  })),
  {
    name: 'pyjwt',
    command: [python ?? '', 'pyjwt.py'],
    skip: python
      ? false
      : 'NOT TESTED: there is no Python with jwt (apt-get install python3-jwt python3-cryptography)',
  },
  {
    name: 'go-oidc',
    command: ['./go-oidc'],
    skip: hasGo
      ? false
      : 'NOT TESTED: there is no go-oidc (apt-get install golang-go golang-github-coreos-go-oidc-dev)',
  },
]

t.test('no receiver refuses an event because of a rotation', async (t) => {
  const home = await temporaryDirectory(t)
  const tls = await ensureDevelopmentCertificates(join(home, 'receiver-certs'), [])
  const [hubClock, clock] = [join(home, 'hub-clock'), join(home, 'clock')]
  // The hub is behind at first: not every receiver lets the clock be moved by which it checks `iat` and `exp`.
  await Promise.all([setClock(hubClock, -leadMs - 60_000), setClock(clock, 0)])
  await cp(folder, home, { recursive: true })
  await symlink(projectFile('node_modules'), join(home, 'node_modules'))
  const hub = await spawnHub(t, home, {
    HUB_PUSH_ALLOW_PRIVATE: 'true',
    HUB_PUSH_CA: tls.ca ?? '',
    NODE_OPTIONS: clockOf(hubClock),
  })
  const ask = <Result>(command: string, args: Record<string, unknown> = {}) =>
    askNode<Result>(hub.adminSocket, command, args)
  const api = await openApi(t, hub)
  const { token } = await addUser({ ask }, api, own)
  await publish('makes the topic')
  const tried = receivers.filter(({ skip }) => skip === false)
  for (const { name, skip } of receivers) {
    if (skip !== false) t.test(name, { skip }, async () => {})
  }
  if (hasGo) execFileSync('go', ['build', 'go-oidc.go'], { cwd: home, env: go })
  const started = await Promise.all(tried.map(({ name, command }) => start(t, name, command)))

  const [first] = await kids()
  await publish('before')
  await all('before', first)

  const { kid: second } = await ask<{ kid: string }>('keys.rotate')
  t.strictSame(await kids(), [first, second], 'the new key is published at once')
  started.push(await start(t, 'jose, started in between', [process.execPath, 'jose.mjs']))
  await publish('in between')
  await all('in between', first)

  // PyJWT asks whether `iat` has passed, without any leeway: it takes a token of a hub that is ahead.
  await Promise.all([setClock(hubClock, 50_000), setClock(clock, leadMs)])
  await publish('after')
  await all('after', second)

  /** Checks that each receiver took the event, signed with the key `kid`. */
  async function all(title: string, kid: unknown): Promise<void> {
    for (const { name, program } of started) {
      const [line] = await program.line(new RegExp(`^\\w+ \\S+ ${title}\\b.*$`))
      t.equal(line, `taken ${kid} ${title}`, name)
    }
  }

  async function start(t: Test, name: string, command: string[]) {
    const port = await freePort()
    const program = startProgram(t, command, {
      cwd: home,
      env: {
        HUB: `https://localhost:${hub.httpsPort}`,
        CERT: tls.cert,
        KEY: tls.key,
        CLOCK: clock,
        PORT: `${port}`,
        NODE_OPTIONS: clockOf(clock),
        NODE_EXTRA_CA_CERTS: hub.caPath,
        SSL_CERT_FILE: hub.caPath,
        PYTHONUTF8: '1',
      },
    })
    await program.line(/^listening$/)
    const url = `https://localhost:${port}/`
    const body = { type: 'PUBSUB', method: 'PUSH', url, contact: 'a@b.example', topic: station().id }
    t.equal((await api.call('POST', '/subscriptions', { token, body })).status, 201)
    return { name, program }
  }

  function publish(title: string) {
    const body = playing(station(), { title })
    return api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body })
  }

  async function kids(): Promise<unknown[]> {
    const { json } = await api.call('GET', '/.well-known/jwks.json')
    return (Array.isArray(json.keys) ? json.keys : []).map(({ kid }) => kid)
  }
})

/** In one step: a process may read the file at any moment. */
async function setClock(path: string, aheadMs: number): Promise<void> {
  await writeFile(`${path}.new`, String(aheadMs))
  await rename(`${path}.new`, path)
}

function works(program: string, args: string[], env: Record<string, string> = {}): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore', env: { ...process.env, ...env } })
    return true
  } catch {
    return false
  }
}
