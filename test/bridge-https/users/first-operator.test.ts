import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createFirstOperator } from '../../../bridge-https/users/first-operator.ts'
import { createUsers } from '../../../bridge-https/users/users.ts'
import { loadConfig } from '../../../config/config.ts'
import { startHub } from '../../../hub.ts'
import { shareCertificates } from '../../certificates.ts'
import { institutions } from '../../events.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { openStoreOf } from '../../stores.ts'
import { openClient, password } from '../api.ts'
import { quickPasswords } from './quick-passwords.ts'

const [own = ''] = institutions
const path = '/auth/first-operator'
const email = 'operator@hub.example'

t.test('the link makes one operator, who is logged in, and is in the audit log', async (t) => {
  const { use, token, api, audited } = await start(t)
  const made = await use({ token, email, password })
  t.equal(made.status, 200)
  t.match(made.json.user, { email, permissions: ['operate', 'subscribe'] })
  t.match(made.headers['set-cookie'], /HttpOnly; Secure; SameSite=Strict/)
  const answer = await api('POST', '/operate/status', { token: String(made.json.token), body: {} })
  t.equal(answer.status, 200)
  t.match(await audited(String(made.json.token)), [
    {
      who: 'first operator',
      action: 'users.add',
      target: email,
      detail: { permissions: ['operate', 'subscribe'] },
    },
  ])
  const again = await use({ token, email: 'second@hub.example', password })
  t.equal(again.status, 400)
  t.match(again.json.errors, [{ path: '.body.token' }])
})

t.test('a wrong use changes nothing, and the link goes on working', async (t) => {
  const { use, token, api } = await start(t, { HUB_LOGIN_FAILURES: '0' })
  for (const [body, status] of [
    [{ token: 'wrong', email, password }, 400],
    [{ token: '', email, password }, 400],
    [{ token, email: 'nobody', password }, 400],
    [{ token, email: `${'x'.repeat(300)}@hub.example`, password }, 400],
    [{ token, email, password: 'short' }, 400],
    [{ token, email, password, permissions: ['operate'] }, 400],
    [{ email, password }, 400],
    ['[]', 400],
    ['x'.repeat(2_000_000), 413],
  ] as const) {
    t.equal((await use(body)).status, status, JSON.stringify(body).slice(0, 80))
  }
  t.equal(
    (await api('POST', path, { body: { token, email, password } })).status,
    403,
    'only pages of the hub',
  )
  const unknown = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`x${n}`, n]))
  const { errors } = (await use({ token, email, password, ...unknown })).json
  t.equal(Array.isArray(errors) && errors.length, 101, 'an answer is not much larger than its request')
  const two = await Promise.all(
    ['a', 'b'].map((name) => use({ token, email: `${name}@hub.example`, password })),
  )
  t.same(two.map(({ status }) => status).sort(), [200, 400], 'one of two at the same time')
})

t.test(
  'where the password cannot be stored, there is no account, and the link goes on working',
  async (t) => {
    const real = quickPasswords()
    let isFailing = true
    const passwords = {
      ...real,
      hash: (...of: Parameters<typeof real.hash>) =>
        isFailing ? Promise.reject(new Error('disk full')) : real.hash(...of),
    }
    const { use, token } = await start(t, {}, undefined, passwords)
    t.equal((await use({ token, email, password })).status, 500)
    isFailing = false
    t.equal((await use({ token, email, password })).status, 200)
  },
)

t.test('who guesses is throttled like a wrong password', async (t) => {
  const { use } = await start(t, { HUB_LOGIN_FAILURES: '2' })
  const statuses: number[] = []
  for (let guess = 0; guess < 4; guess++) {
    statuses.push((await use({ token: `guess-${guess}`, email, password })).status)
  }
  t.same(statuses, [400, 400, 429, 429])
})

t.test('there is no link once there is an operator, nor after an hour', async (t) => {
  const store = await openStoreOf({}, await temporaryDirectory(t))
  t.teardown(() => store.close())
  const users = await createUsers({
    store,
    passwords: quickPasswords(),
    clock: Date.now,
    knownInstitution: () => true,
  })
  let now = 0
  const link = () => createFirstOperator({ users, clock: () => now })
  const first = link()
  const old = first.token() ?? ''
  t.ok(old)
  now = 3600 * 1000
  t.equal(first.token(), undefined)
  t.notOk(first.take(old))
  await users.add({ email: 'studio@radio.example', institution: own })
  const second = link()
  const token = second.token() ?? ''
  t.ok(token, 'other users are no operators')
  await users.add({ email, institution: own, permissions: ['operate'] })
  t.notOk(second.take(token), 'hubctl was faster')
})

t.test('a node with certificates of its own has no link', async (t) => {
  const { home, token, close } = await start(t)
  await close()
  const certs = join(home, 'certs')
  const own = await start(
    t,
    { HUB_TLS_CERT: join(certs, 'server.pem'), HUB_TLS_KEY: join(certs, 'server-key.pem') },
    home,
  )
  t.equal(own.token, '')
  t.equal((await own.use({ token, email, password })).status, 400)
})

async function start(
  t: Test,
  env: Record<string, string> = {},
  directory?: string,
  passwords = quickPasswords(),
) {
  const home = directory ?? (await temporaryDirectory(t))
  const loaded = loadConfig(
    { HUB_DATA_DIR: join(home, 'data'), HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0', ...env },
    home,
  )
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
  const certsDir = join(home, 'certs')
  await shareCertificates(certsDir)
  const hub = await startHub(loaded.config, pino({ level: 'silent' }), {
    certsDir,
    passwords,
  })
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= hub.close()
    return closing
  }
  t.teardown(close)
  const api = openClient(t, { httpsPort: hub.httpsPort, caPath: hub.caPath ?? join(certsDir, 'ca.pem') })
  return {
    home,
    api,
    close,
    token: hub.firstOperatorToken ?? '',
    use: (body: unknown) => api('POST', path, { body, headers: { 'x-hub-page': '1' } }),
    audited: async (token: string) => (await api('POST', '/operate/audit', { token, body: {} })).json.result,
  }
}
