import { readFileSync } from 'node:fs'
import { createServer as createPlainServer } from 'node:http'
import { createServer } from 'node:https'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { PushRefused, type PushRequest, verifyPush } from '../../client/node.ts'
import { pushBody } from '../../delivery/webhook/push-message.ts'
import { shareCertificates } from '../certificates.ts'
import { playing, station } from '../events.ts'
import { listen } from '../listen.ts'
import { temporaryDirectory } from '../start-hub.ts'

const url = 'https://hooks.kuestenfunk.example/events'
const serviceAccount = 'publisher@hub.example'
const name = 'de.org.hub.subscription.one'
const subscriptions = [
  { name: 'another', serviceAccount: 'other@hub.example' },
  { name, serviceAccount },
]
const event = playing(station(), { id: '7', title: 'Ebbe und Flut' })
const text = pushBody({
  data: Buffer.from(JSON.stringify(event)),
  attributes: { event: String(event.event), livestreamId: station().id },
  messageId: '7',
  publishedAt: Date.parse('2026-01-31T11:00:00Z'),
  subscription: name,
})
const body = JSON.parse(text.toString())
const now = () => Math.floor(Date.now() / 1000)

t.test('a genuine push is verified, in each form that servers have of it', async (t) => {
  const hub = await startKeys(t)
  const headers = { authorization: `Bearer ${await hub.sign()}` }
  const expected = { event, messageId: '7', publishTime: '2026-01-31T11:00:00.000Z', subscription: name }
  for (const [form, request] of Object.entries<PushRequest>({
    'parsed, as of Express': { headers, body },
    'a text': { headers, body: text.toString() },
    'bytes, as of serverless functions': {
      headers: { Authorization: headers.authorization },
      body: Buffer.from(text),
    },
    'a Request': new Request(url, { method: 'POST', headers, body: text }),
  })) {
    t.match(await verifyPush(request, hub.options), expected, form)
  }
  const server = createPlainServer(async (request, response) => {
    const push = await verifyPush(request, hub.options)
    response.writeHead(201).end(push.messageId)
  })
  const port = await listen(t, server)
  const answer = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', headers, body: text })
  t.strictSame([answer.status, await answer.text()], [201, '7'], 'a request of Node.js')
  t.equal(hub.asked(), 1, 'the keys are kept')
})

t.test('a token that is not of the hub for this receiver is not valid, whatever its form', async (t) => {
  const hub = await startKeys(t)
  const genuine = await hub.sign()
  const [header = '', claims = '', signature = ''] = genuine.split('.')
  const headerOf = (fields: object) => base64Url({ alg: 'RS256', kid: 'one', ...fields })
  const { privateKey: stranger } = await generateKeyPair('RS256')
  const tokens: Record<string, string> = {
    'another issuer': await hub.sign({ iss: 'https://other.example' }),
    'another audience': await hub.sign({ aud: 'https://hooks.kuestenfunk.example/other' }),
    'no audience': await hub.sign({ aud: undefined }),
    'another account': await hub.sign({ email: 'other@hub.example' }),
    'an account that is not verified': await hub.sign({ email_verified: false }),
    'expired, beyond the tolerance': await hub.sign({ exp: now() - 61 }),
    'no end': await hub.sign({ exp: undefined }),
    'an end that is no number': await hub.sign({ exp: '9999999999' }),
    'made in the future': await hub.sign({ iat: now() + 120 }),
    'an access token': await hub.sign({}, { typ: 'at+jwt' }),
    'an extension': `${headerOf({ crit: ['exp'], exp: 0 })}.${claims}.${signature}`,
    'signed by somebody else': await hub.sign({}, {}, stranger),
    'without a signature': `${header}.${claims}.`,
    'alg none': `${headerOf({ alg: 'none' })}.${claims}.${signature}`,
    'alg HS256': `${headerOf({ alg: 'HS256' })}.${claims}.${signature}`,
    'alg in another case': `${headerOf({ alg: 'rs256' })}.${claims}.${signature}`,
    'a kid that is no text': `${headerOf({ kid: { $ne: '' } })}.${claims}.${signature}`,
    'an own key': `${headerOf({ kid: undefined, jwk: await exportJWK(hub.publicKey) })}.${claims}.${signature}`,
    'claims of another token': `${header}.${base64Url({ iss: 'x' })}.${signature}`,
    'no JSON': `${Buffer.from('{').toString('base64url')}.${claims}.${signature}`,
    'JSON that is no object': `${base64Url([])}.${claims}.${signature}`,
    'no UTF-8': `${Buffer.from([0xff, 0xfe]).toString('base64url')}.${claims}.${signature}`,
    'two parts': `${header}.${claims}`,
    'four parts': `${genuine}.${signature}`,
    'no parts': 'token',
    dots: '..',
    'not base64': `${header}.%%%.${signature}`,
    'a signature of another length': `${header}.${claims}.AA`,
    'far too long': `${header}.${'A'.repeat(10_000)}.${signature}`,
    'many dots': '.'.repeat(8_000),
  }
  for (const [what, token] of Object.entries(tokens)) {
    await refused(t, what, 'token.invalid', 204, verifyPush(requestWith(token), hub.options))
  }
  t.ok(hub.asked() <= 1)
  t.ok(await verifyPush(requestWith(await hub.sign({ exp: now() - 30, iat: now() + 30 })), hub.options))
  t.ok(await verifyPush(requestWith(await hub.sign({ aud: ['x', url] })), hub.options))
})

t.test('what is no push, or of nobody that is expected, is told from what is forged', async (t) => {
  const hub = await startKeys(t)
  const token = await hub.sign()
  const authorization = `Bearer ${token}`
  const { message } = body
  for (const headers of [
    {},
    { authorization: '' },
    { authorization: token },
    { authorization: 'Bearer ' },
    null,
    7,
  ]) {
    await refused(
      t,
      JSON.stringify(headers),
      'token.missing',
      401,
      verifyPush({ headers, body }, hub.options),
    )
  }
  for (const wrong of [
    ...[null, 7, [], {}, '', '{', 'null', Buffer.from([0xff]), 'x'.repeat(1_000_001)],
    { subscription: name },
    { message, subscription: 7 },
    { message: { ...message, data: '%' }, subscription: name },
    { message: { ...message, data: Buffer.from('[]').toString('base64') }, subscription: name },
    { message: { ...message, messageId: 7 }, subscription: name },
    { message: { ...message, publishTime: { toString: 7 } }, subscription: name },
  ]) {
    const request = { headers: { authorization }, body: wrong }
    await refused(
      t,
      JSON.stringify(wrong).slice(0, 50),
      'push.unreadable',
      400,
      verifyPush(request, hub.options),
    )
  }
  const unknown = {
    headers: { authorization },
    body: { message, subscription: 'de.org.hub.subscription.two' },
  }
  await refused(t, 'not in the list', 'subscription.unknown', 503, verifyPush(unknown, hub.options))
  const other = { headers: { authorization }, body: { message, subscription: 'another' } }
  await refused(t, 'signed for another one', 'token.invalid', 204, verifyPush(other, hub.options))
})

t.test('an unknown key is looked for again, and not more often than every ten seconds', async (t) => {
  const hub = await startKeys(t)
  t.ok(await verifyPush(requestWith(await hub.sign()), hub.options))
  for (let nth = 0; nth < 20; nth++) {
    const token = await hub.sign({}, { kid: `forged-${nth}` })
    await refused(t, `forged ${nth}`, 'key.unknown', 503, verifyPush(requestWith(token), hub.options))
  }
  t.equal(hub.asked(), 1, 'strangers cannot make it ask')
})

t.test('without the keys it cannot tell', async (t) => {
  const hub = await startKeys(t, { status: 503 })
  const token = await hub.sign()
  await refused(t, 'an error', 'hub.unreachable', 503, verifyPush(requestWith(token), hub.options))
  await refused(t, 'again', 'hub.unreachable', 503, verifyPush(requestWith(token), hub.options))
  t.equal(hub.asked(), 1)
  const options = { ...hub.options, hub: 'https://localhost:1' }
  await refused(t, 'nobody', 'hub.unreachable', 503, verifyPush(requestWith(token), options))
})

t.test('a wrong option is named', async (t) => {
  const options = { hub: 'https://hub.example', url, subscriptions }
  for (const [option, wrong] of Object.entries({
    hub: { hub: 'http://hub.example' },
    url: { url: '/events' },
    issuer: { issuer: 'hub' },
    subscriptions: { subscriptions: { name } as never },
    ca: { ca: '/nowhere/ca.pem' },
  })) {
    await t.rejects(verifyPush(requestWith('a.b.c'), { ...options, ...wrong }), {
      code: 'option.invalid',
      message: new RegExp(`^${option} `),
    })
  }
})

/** A hub of which only the keys are there. */
async function startKeys(t: Test, { status = 200 } = {}) {
  const home = await temporaryDirectory(t)
  await shareCertificates(home)
  const read = (file: string) => readFileSync(`${home}/${file}`, 'utf8')
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }
  let asked = 0
  const server = createServer(
    { key: read('server-key.pem'), cert: read('server.pem') },
    (request, response) => {
      asked++
      response.writeHead(request.url === '/.well-known/jwks.json' ? status : 404)
      response.end(JSON.stringify({ keys: [{ kty: 'EC', kid: 'two' }, null, jwk] }))
    },
  )
  const port = await listen(t, server)
  const hub = `https://localhost:${port}`
  return {
    publicKey,
    asked: () => asked,
    options: { hub: `${hub}/`, url, subscriptions, ca: read('ca.pem') },
    sign(claims: Record<string, unknown> = {}, header: object = {}, key = privateKey): Promise<string> {
      const usual = { iss: hub, aud: url, sub: serviceAccount, email: serviceAccount, email_verified: true }
      const token = new SignJWT({ ...usual, iat: now(), exp: now() + 3600, ...claims })
      return token.setProtectedHeader({ alg: 'RS256', kid: 'one', typ: 'JWT', ...header }).sign(key)
    },
  }
}

async function refused(t: Test, what: string, code: string, status: number, result: Promise<unknown>) {
  const error = await result.then(
    () => undefined,
    (error: unknown) => error,
  )
  t.ok(error instanceof PushRefused, what)
  t.match(error, { code, status }, what)
}

function requestWith(token: string): PushRequest {
  return { headers: { authorization: `Bearer ${token}` }, body }
}

function base64Url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
