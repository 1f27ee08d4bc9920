import { createHmac, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { exportSPKI, generateKeyPair, importJWK, type JWTPayload, SignJWT } from 'jose'
import t from 'tap'
import { createTokens, lifetimes } from '../../../bridge-https/users/tokens.ts'
import { createUsers } from '../../../bridge-https/users/users.ts'
import { createSigningKeys } from '../../../certs/signing-keys.ts'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { quickPasswords } from '../../bridge-https/users/quick-passwords.ts'
import { institutions } from '../../events.ts'
import { openStore } from '../../open-store.ts'
import { startTestHub } from '../../start-hub.ts'

const [own = ''] = institutions
const decode = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString())
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

t.test('attacks on tokens end with 403', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token, refreshToken } = await addUser(hub, api, own)
  const [head, body, signature = ''] = token.split('.')
  const header = decode(head)
  const claims: JWTPayload = decode(body)
  t.match(header, { alg: 'RS256', typ: 'at+jwt', kid: /./ })
  t.equal((await api.call('GET', '/topics', { token })).status, 200, 'the real one is taken')

  const { json: set } = await api.call('GET', '/.well-known/jwks.json')
  const [jwk] = Array.isArray(set.keys) ? set.keys : []
  t.same(Object.keys(jwk).sort(), ['alg', 'e', 'kid', 'kty', 'n', 'use'], 'nothing private is shown')
  const publicKey = await importJWK(jwk, 'RS256', { extractable: true })
  if (publicKey instanceof Uint8Array) throw new Error('not a public key')
  const pem = await exportSPKI(publicKey)

  const unsigned = (alg: string) => `${encode({ ...header, alg })}.${body}.`
  const hmac = (secret: string | Buffer) => {
    const input = `${encode({ ...header, alg: 'HS256' })}.${body}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  const { privateKey } = await generateKeyPair('RS256')
  const foreign = (extra: object, protectedHeader: object = {}) =>
    new SignJWT({ ...claims, ...extra })
      .setProtectedHeader({ ...header, ...protectedHeader })
      .sign(privateKey)

  const attacks: [why: string, token: string][] = [
    ['alg none', unsigned('none')],
    ['alg None', unsigned('None')],
    ['alg none with the signature', `${encode({ ...header, alg: 'none' })}.${body}.${signature}`],
    ['no signature', `${head}.${body}.`],
    ['HS256 with the public key as PEM', hmac(pem)],
    ['HS256 with the trimmed PEM', hmac(pem.trim())],
    ['HS256 with the modulus', hmac(Buffer.from(jwk.n, 'base64url'))],
    ['HS256 with the JWK', hmac(JSON.stringify(jwk))],
    ['a foreign key under our key id', await foreign({})],
    ['a foreign key under its own key id', await foreign({}, { kid: randomUUID() })],
    ['a key that the token brings along', await foreign({}, { jwk })],
    ['a key the token says where to find', await foreign({}, { jku: 'https://evil.example/jwks.json' })],
    ['a key id that is a path', await foreign({}, { kid: '../../dev/null' })],
    ['a key id of every object', await foreign({}, { kid: '__proto__' })],
    ['no key id', await foreign({}, { kid: undefined })],
    ['other claims under our signature', `${head}.${encode({ ...claims, sub: 'x' })}.${signature}`],
    ['another header under our signature', `${encode({ ...header, typ: 'x' })}.${body}.${signature}`],
    ['a refresh token', refreshToken],
    ['too long', `${token}${'A'.repeat(10_000)}`],
    ['not a token', 'null'],
    ['an empty claim set', `${head}.${encode(null)}.${signature}`],
  ]
  for (const [why, attack] of attacks) {
    const { status, json } = await api.call('GET', '/topics', { token: attack })
    t.equal(status, 403, why)
    t.match(json, { errors: [{ errorCode: 'authorization.invalid' }] }, why)
  }
  t.equal(
    (await api.call('POST', '/auth/refresh', { body: { refreshToken: token } })).status,
    403,
    'an access token refreshes nothing',
  )
})

t.test('a token that has expired is a 403, one that has not opens the door', async (t) => {
  const env = { HUB_PUBLIC_URL: 'https://hub.example' }
  const first = await startTestHub(t, env)
  const { userId } = await addUser(first, await openApi(t, first), own)
  await first.close()

  // Two tokens signed with the key of the node: one made two hours ago, and one made now.
  const store = await openEmbeddedStore(join(first.home, 'data', 'store'))
  const made = await Promise.all(
    [2 * lifetimes.access * 1000, 0].map(async (ago) => {
      const clock = () => Date.now() - ago
      const keys = await createSigningKeys({ store, clock, keepMs: lifetimes.refresh * 1000, leadMs: 0 })
      const users = await createUsers({
        store,
        clock,
        passwords: quickPasswords(),
        knownInstitution: () => true,
      })
      const user = users.current(userId, 1)
      if (!user) throw new Error('no user')
      const issuer = () => env.HUB_PUBLIC_URL
      return createTokens({ keys, users, clock, issuer, serviceAccount: 'push@hub' }).issue(user)
    }),
  )
  await store.close()

  const api = await openApi(t, await startTestHub(t, env, first.home))
  const answers = await Promise.all(made.map(({ token }) => api.call('GET', '/topics', { token })))
  t.same(
    answers.map(({ status }) => status),
    [403, 200],
  )
  t.same(answers[0]?.json, {
    message: 'Invalid authorization',
    errors: [
      {
        path: '.headers.authorization',
        message: 'The token is not valid, or has expired',
        errorCode: 'authorization.invalid',
      },
    ],
    trace: null,
  })
})

t.test('what a token of ours must say', async (t) => {
  const store = await openStore(t)
  let now = Date.parse('2026-03-01T12:00:00Z')
  const clock = () => now
  const keys = await createSigningKeys({ store, clock, keepMs: lifetimes.refresh * 1000, leadMs: 0 })
  const users = await createUsers({
    store,
    passwords: quickPasswords(),
    clock,
    knownInstitution: () => true,
  })
  const issuers = { issuer: 'https://hub.example' }
  const tokens = createTokens({
    keys,
    users,
    clock,
    issuer: () => issuers.issuer,
    serviceAccount: 'push@hub',
  })
  const added = await users.add({ email: 'a@b.example', institution: own })
  if ('error' in added) throw new Error(added.error)
  const user = { ...added.user, generation: 0 }
  const { token, refreshToken } = await tokens.issue(user)

  const known = await tokens.userOf(token)
  t.match(known, { ...user, loginId: /^[0-9a-f-]{36}$/ })
  t.same(await tokens.userOfRefresh(refreshToken), known, 'both go back to one log-in')
  t.notOk(await tokens.userOfRefresh(token))

  const { kid, key } = keys.current()
  const claims = decode(token.split('.')[1])
  const signed = (changes: Record<string, unknown>, typ: string | undefined = 'at+jwt') =>
    new SignJWT(JSON.parse(JSON.stringify({ ...claims, ...changes })))
      .setProtectedHeader({ alg: 'RS256', kid, ...(typ !== undefined && { typ }) })
      .sign(key)
  t.ok(await tokens.userOf(await signed({})), 'signed by hand it is one as well')
  for (const changes of [
    { iss: 'https://other.example' },
    { iss: undefined },
    { aud: 'https://other.example' },
    { aud: undefined },
    { exp: undefined },
    { exp: now / 1000 - 1 },
    { iat: undefined },
    { nbf: now / 1000 + 60 },
    { sub: undefined },
    { sub: 'nobody' },
    { gen: undefined },
    { gen: 7 },
    { gen: '0' },
  ]) {
    t.notOk(await tokens.userOf(await signed(changes)), JSON.stringify(changes))
  }
  for (const typ of ['JWT', 'rt+jwt', '', 'jwt']) t.notOk(await tokens.userOf(await signed({}, typ)), typ)

  const push = await tokens.issueService('https://hub.example')
  t.ok(await tokens.isService(push, 'https://hub.example'))
  t.notOk(await tokens.isService(push, 'https://other.example'))
  t.notOk(await tokens.isService(token, 'https://hub.example'))
  t.notOk(await tokens.userOf(push), 'the token of a push opens nothing')

  now += 3599_000
  t.ok(await tokens.userOf(token))
  now += 2_000
  t.notOk(await tokens.userOf(token), 'expired after an hour')
  t.ok(await tokens.userOfRefresh(refreshToken))
  now += lifetimes.refresh * 1000
  t.notOk(await tokens.userOfRefresh(refreshToken), 'expired after 30 days')

  const fresh = await tokens.issue(user)
  t.ok(await tokens.userOf(fresh.token))
  const [head, , signature] = fresh.token.split('.')
  t.notOk(
    await tokens.userOf([head, token.split('.')[1], signature].join('.')),
    'a signature of something else',
  )
  issuers.issuer = 'https://moved.example'
  t.notOk(await tokens.userOf(fresh.token), 'tokens belong to the public URL')
})

t.test('a password that is changed right after it was checked gives no tokens that last', async (t) => {
  const store = await openStore(t)
  const clock = Date.now
  const keys = await createSigningKeys({ store, clock, keepMs: lifetimes.refresh * 1000, leadMs: 0 })
  const users = await createUsers({
    store,
    clock,
    passwords: quickPasswords(),
    knownInstitution: () => true,
  })
  const issuer = () => 'https://hub.example'
  const tokens = createTokens({ keys, users, clock, issuer, serviceAccount: 'push@hub' })
  const added = await users.add({ email: 'a@b.example', institution: own })
  if ('error' in added) throw new Error(added.error)
  await users.setPassword(added.token, 'the first password')
  const reset = await users.issueReset('a@b.example', 'operator')
  const user = await users.authenticate('a@b.example', 'the first password')
  await users.setPassword(reset?.token ?? '', 'the second password')
  if (!user) throw new Error('not let in')
  const { token, refreshToken } = await tokens.issue(user)
  t.equal(await tokens.userOf(token), undefined)
  t.equal(await tokens.userOfRefresh(refreshToken), undefined)
})

t.test('keys rotate without anybody noticing, or at once', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token, refreshToken } = await addUser(hub, api, own)
  const kids = async () => {
    const { json } = await api.call('GET', '/.well-known/jwks.json')
    return (Array.isArray(json.keys) ? json.keys : []).map(({ kid }) => kid)
  }
  const [old] = await kids()
  const { kid } = await hub.ask<{ kid: string }>('keys.rotate')
  t.same((await kids()).sort(), [old, kid].sort())
  t.equal((await api.call('GET', '/topics', { token })).status, 200)
  const { json } = await api.call('POST', '/auth/refresh', { body: { refreshToken } })
  t.equal(
    decode(String(json.token).split('.')[0]).kid,
    old,
    'the old one signs until receivers know the new one',
  )
  t.match(await hub.ask('keys.list'), [
    { kid, state: 'waiting', replacedAt: null },
    { kid: old, state: 'signing', replacedAt: null },
  ])

  const { kid: third } = await hub.ask<{ kid: string }>('keys.rotate', { dropOld: true })
  t.same(await kids(), [third])
  t.equal((await api.call('GET', '/topics', { token })).status, 403)
  t.equal((await api.call('POST', '/auth/refresh', { body: { refreshToken } })).status, 403)
  t.notMatch(JSON.stringify(await hub.ask('keys.list')), /privateJwk|"d"/)

  const { json: discovery } = await api.call('GET', '/.well-known/openid-configuration')
  const issuer = `https://localhost:${hub.httpsPort}`
  t.match(discovery, { issuer, jwks_uri: `${issuer}/.well-known/jwks.json` })
})
