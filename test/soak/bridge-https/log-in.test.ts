import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createPasswords, type Passwords } from '../../../bridge-https/users/passwords.ts'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { startMailServer } from '../../bridge-https/users/mail-server.ts'
import { writeConfig } from '../../bridge-https/users/write-config.ts'
import { institutions } from '../../events.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'
import { createBrowser, logIn, skip } from '../../web/browser.ts'

const [own = ''] = institutions
const browser = createBrowser(t)

async function start(t: Test, env: Record<string, string> = {}, passwords?: Passwords) {
  const hub = await startTestHub(t, env, undefined, passwords)
  return { hub, api: await openApi(t, hub) }
}

/** Starts a hub with real, slow password hashes. Other tests use quick ones. */
const startSlow = (t: Test) => start(t, {}, createPasswords())

t.test('log-in, refresh, and what ends them (design.md §9)', async (t) => {
  const { hub, api } = await startSlow(t)
  const { email, userId, token, refreshToken } = await addUser(hub, api, own, {
    email: 'Studio@Radio.example',
  })
  const logIn = (secret: string, who = email) =>
    api.call('POST', '/auth/login', { body: { email: who, password: secret } })

  const { status, json, headers } = await logIn(password)
  t.equal(status, 200)
  t.same(Object.keys(json).sort(), ['expires', 'expiresIn', 'refreshToken', 'token', 'trace', 'user'])
  t.match(json, {
    token: /^[\w-]+\.[\w-]+\.[\w-]+$/,
    refreshToken: /^[\w-]+\.[\w-]+\.[\w-]+$/,
    expiresIn: 3600,
    user: { user_id: userId, email: 'studio@radio.example', email_verified: false, institution: own },
    trace: null,
  })
  t.ok(Math.abs(Date.parse(String(json.expires)) - Date.now() - 3600_000) < 10_000)
  t.equal(headers['cache-control'], 'no-store')
  t.equal((await logIn(password, 'STUDIO@radio.EXAMPLE')).status, 200, 'case of an address does not matter')

  const refreshed = await api.call('POST', '/auth/refresh', { body: { refreshToken } })
  t.equal(refreshed.status, 200)
  t.same(Object.keys(refreshed.json).sort(), Object.keys(json).sort())
  t.match(refreshed.json, { expiresIn: 3600, user: json.user, trace: null })
  t.not(refreshed.json.token, json.token, 'a new one')
  t.equal((await api.call('GET', '/topics', { token: String(refreshed.json.token) })).status, 200)

  const wrong = {
    message: 'The e-mail address or the password is wrong',
    errors: [
      { path: '.body', message: 'The e-mail address or the password is wrong', errorCode: 'login.wrong' },
    ],
    trace: null,
  }
  for (const [secret, who] of [
    ['wrong password', email],
    [password, 'nobody@radio.example'],
    ['', email],
  ] as const) {
    const refused = await logIn(secret, who)
    t.equal(refused.status, 401)
    t.same(refused.json, wrong, 'the same words for a wrong password and an unknown user')
  }
  for (const refresh of ['x', token, '']) {
    const refused = await api.call('POST', '/auth/refresh', { body: { refreshToken: refresh } })
    t.equal(refused.status, 403)
    t.same(refused.json, {
      message: 'Invalid authorization',
      errors: [
        {
          path: '.body.refreshToken',
          message: 'The refresh token is not valid, or has expired',
          errorCode: 'refresh.invalid',
        },
      ],
      trace: null,
    })
  }
  t.match((await api.call('POST', '/auth/login', { body: { email } })).json, {
    errors: [{ path: '.body.password', errorCode: 'required.openapi.validation' }],
  })

  // A new password voids all tokens that the user got with the old one.
  const { resetToken } = await hub.ask<{ resetToken: string }>('users.reset-password', { email })
  t.equal((await logIn(password)).status, 200, 'the old password works until the new one is chosen')
  const short = await api.call('POST', '/auth/reset', { body: { token: resetToken, password: 'short' } })
  t.equal(short.status, 400)
  t.match(short.json, { errors: [{ path: '.body.password', errorCode: 'minLength.openapi.validation' }] })
  t.notMatch(short.text, '"short"', 'a password is never repeated')
  const changed = { token: resetToken, password: 'another long password' }
  t.same((await api.call('POST', '/auth/reset', { body: changed })).json, { trace: null })
  const twice = await api.call('POST', '/auth/reset', { body: changed })
  t.equal(twice.status, 400)
  t.match(twice.json, { errors: [{ path: '.body.token', errorCode: 'reset.invalid' }], trace: null })
  t.equal((await logIn(password)).status, 401)
  t.equal((await logIn(changed.password)).status, 200)
  t.equal((await api.call('POST', '/auth/refresh', { body: { refreshToken } })).status, 403)
  t.equal((await api.call('GET', '/topics', { token })).status, 403)

  // The removal of the user voids the tokens too.
  const last = (await logIn(changed.password)).json
  await hub.ask('users.remove', { email })
  t.equal((await api.call('GET', '/topics', { token: String(last.token) })).status, 403)
  t.equal(
    (await api.call('POST', '/auth/refresh', { body: { refreshToken: last.refreshToken } })).status,
    403,
  )
  t.same((await logIn(changed.password)).json, wrong)
  const secrets = [password, changed.password, resetToken, token, refreshToken]
  const written = JSON.stringify([hub.lines, await hub.ask('audit')])
  for (const secret of secrets) t.notOk(written.includes(secret), 'no secret in log and audit')
})

t.test('doors do not open with the keys of others', async (t) => {
  const { hub, api } = await start(t)
  const mqtt = await hub.publisher([own])
  const body = { email: mqtt.username, password: mqtt.password }
  t.equal((await api.call('POST', '/auth/login', { body })).status, 400, 'a user name is no address')
  const asAddress = { ...body, email: `${mqtt.username}@hub.example` }
  t.equal((await api.call('POST', '/auth/login', { body: asAddress })).status, 401)
  t.equal((await api.call('GET', '/topics', { token: mqtt.password })).status, 403)
  const basic = Buffer.from(`${mqtt.username}:${mqtt.password}`).toString('base64')
  const headers = { authorization: `Basic ${basic}` }
  t.equal((await api.call('GET', '/topics', { headers })).status, 401)
})

t.test('log-in is throttled per address and per account', async (t) => {
  const { hub, api } = await start(t, { HUB_LOGIN_FAILURES: '6' })
  const { email } = await addUser(hub, api, own)
  const logIn = (secret: string, who: string) =>
    api.call('POST', '/auth/login', { body: { email: who, password: secret } })
  for (const who of [email, 'nobody@radio.example']) {
    for (let failure = 0; failure < 3; failure++) t.equal((await logIn('wrong', who)).status, 401)
    const { status, json, headers } = await logIn(password, who)
    t.equal(status, 429, `${who}: whether there is such an account or not`)
    t.same(json, { message: 'Too many requests, try again later', trace: null })
    t.match(headers['retry-after'], /^\d+$/)
  }
  t.equal((await logIn(password, 'third@radio.example')).status, 429, 'six failures of the address')
  const reset = { token: 'guess', password: 'a long password' }
  t.equal((await api.call('POST', '/auth/reset', { body: reset })).status, 429)
  const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
  t.equal(counters['hub_logins_total{outcome=throttled}'], 4)
})

onEachStore('wrong passwords from elsewhere do not lock the owner out', async (t, store) => {
  const home = await temporaryDirectory(t)
  const before = await startTestHub(t, { ...store, HUB_LOGIN_FAILURES: '6' }, home)
  const { email } = await addUser(before, await openApi(t, before), own)
  await before.close()
  const hub = await startTestHub(t, { ...store, HUB_LOGIN_FAILURES: '6' }, home)
  const api = await openApi(t, hub)
  const logIn = (secret: string, from: string) =>
    api.call('POST', '/auth/login', { body: { email, password: secret }, from })
  for (const network of [1, 2, 3]) {
    for (const status of [401, 401, 401, 429]) {
      t.equal((await logIn('wrong', `127.0.${network}.1`)).status, status)
    }
  }
  t.equal((await logIn(password, '127.0.0.1')).status, 200, 'from where the owner always comes')
  t.equal((await logIn(password, '127.0.0.2')).status, 200, 'with another address there')
  t.equal((await logIn(password, '127.0.4.1')).status, 200, 'from a new place')
  t.equal((await logIn(password, '127.0.1.1')).status, 429, 'from where it was guessed')
})

t.test('however many strangers guess, who has logged in before is served next', async (t) => {
  // Slow enough to wait for, and so quick that 31 of them end within the minute of a request on a busy machine.
  const { hub, api } = await start(t, {}, createPasswords({ work: { logN: 12, r: 8, p: 3 } }))
  const { email } = await addUser(hub, api, own)
  let answered = 0
  const guesses = Array.from({ length: 45 }, async (_, index) => {
    const body = { email: `nobody-${index}@radio.example`, password: 'guess' }
    await api.raw('POST', '/auth/login', { body, from: `127.0.${1 + (index % 15)}.1` })
    answered++
  })
  // When the first answer comes, the hub is checking one guess. The other guesses wait, or the hub has refused them:
  // too many were waiting.
  while (answered === 0) await setImmediate()
  const known = api.call('POST', '/auth/login', { body: { email, password } }).then(({ status }) => {
    t.equal(status, 200)
    return answered
  })
  const sentAway = 45 - 31
  t.ok((await known) <= sentAway + 10, `${await known} of 45 strangers were answered before`)
  const fresh = await api.call('POST', '/auth/login', { body: { email, password }, from: '127.0.99.1' })
  t.equal(fresh.status, 200, 'a place that is new gets its turn as well')
  await Promise.all(guesses)
})

t.test('many right log-ins at once are none too many', async (t) => {
  const { hub, api } = await start(t, { HUB_LOGIN_FAILURES: '6' })
  const { email } = await addUser(hub, api, own)
  for (let time = 0; time < 8; time++) {
    t.equal((await api.call('POST', '/auth/login', { body: { email, password } })).status, 200)
  }
})

t.test('a link is mailed to whoever has an account, and nobody can tell', async (t) => {
  const mail = await startMailServer(t)
  const { hub, api } = await start(t, {
    HUB_CONFIG: await writeConfig(t, {
      smtp: { host: '127.0.0.1', port: mail.port, from: 'hub@hub.example' },
    }),
    HUB_PUBLIC_URL: 'https://hub.example',
  })
  const { email } = await addUser(hub, api, own)
  for (const who of ['nobody@radio.example', email]) {
    const { status, json } = await api.call('POST', '/auth/reset', { body: { email: who } })
    t.equal(status, 200)
    t.same(json, { trace: null })
  }
  const message = await mail.next()
  t.match(message, { to: [email], from: 'hub@hub.example' })
  const [, token = ''] = /https:\/\/hub\.example\/auth\/reset#token=([\w-]{43})/.exec(message.text) ?? []
  const body = { token, password: 'chosen by the link' }
  t.equal((await api.call('POST', '/auth/reset', { body })).status, 200)
  t.equal((await api.call('POST', '/auth/reset', { body })).status, 400, 'once')
  const login = await api.call('POST', '/auth/login', { body: { email, password: body.password } })
  t.match(login.json, { user: { email_verified: true } })
  t.equal(mail.count(), 1, 'nothing to nobody')

  for (let more = 0; more < 4; more++) {
    t.equal((await api.call('POST', '/auth/reset', { body: { email } })).status, 200)
  }
  t.match(await mail.next(), { to: [email] })
  t.match(await mail.next(), { to: [email] })
  await hub.close()
  t.equal(mail.count(), 3, 'three mails an hour')
})

t.test('a person chooses a password on the page behind the link', { skip }, async (t) => {
  const { hub, api } = await start(t)
  const asked = { email: 'studio@radio.example', institution: own }
  const { email, resetToken } = await hub.ask<{ email: string; resetToken: string }>('users.add', asked)
  const { page, problems } = await browser.open(t, hub, `/auth/reset#token=${resetToken}`)
  await page.getByLabel('New password').fill(password)
  t.notOk(await page.getByRole('link').isVisible(), 'first the password')
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByText('Your password is set. You can log in now.').waitFor()
  t.equal((await api.call('POST', '/auth/login', { body: { email, password } })).status, 200)
  await page.getByRole('link', { name: 'To the console' }).click()
  await logIn(page, email)
  await page.goto(`https://localhost:${hub.httpsPort}/auth/reset`)
  await page.getByText('This link is not complete. Ask for a new one.').waitFor()
  t.same(problems, [])
})
