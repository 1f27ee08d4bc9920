import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import t, { type Test } from 'tap'
import { loadConfig } from '../../../../config/config.ts'
import { keptAttempts } from '../../../../delivery/attempts.ts'
import { workLimits } from '../../../../delivery/queue/limits.ts'
import { backOff } from '../../../../delivery/runner/back-off.ts'
import { pushBody } from '../../../../delivery/webhook/push-message.ts'
import { addUser, openApi, openClient } from '../../../bridge-https/api.ts'
import { codeBlock, readPage, startProgram } from '../../../documentation.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { projectFile } from '../../../root.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

/*
 * Runs the example receivers of docs/webhooks.md against a node. The receiver in Python verifies tokens with libraries
 * that the hub does not use.
 */
const page = readPage('webhooks.md')
const [own = ''] = institutions
const dayMs = 24 * 3_600_000

/** A Python that has the modules. Debian installs them for /usr/bin/python3, which may not be the first in PATH. */
const python = ['python3', '/usr/bin/python3'].find(hasJwt)
const skip =
  python === undefined
    ? 'NOT TESTED: there is no Python with jwt (apt-get install python3-jwt python3-cryptography)'
    : false

const receivers = [
  {
    language: 'js',
    command: [process.execPath, 'receiver.mjs'],
    having: 'jwtVerify(token, keys',
    skip: false,
  },
  { language: 'python', command: [python ?? '', 'receiver.py'], having: 'serve_forever', skip },
] as const

for (const receiver of receivers) {
  t.test(`the receiver in ${receiver.language}`, { skip: receiver.skip, timeout: 120_000 }, async (t) => {
    const { home, recorder, hub, api, user, logIn, publish, subscribe, list } = await start(t)
    const program = await startReceiverOf(t, home, hub, receiver)
    const post = openClient(t, { httpsPort: program.port, caPath: recorder.ca })
    const { name } = await subscribe(`https://localhost:${program.port}/`)
    const statuses = async (of: string) => {
      const { json } = await api.call('GET', `/subscriptions/${of}/deliveries`, user)
      return Array.isArray(json) ? json.map(({ status }) => status) : []
    }
    const test = async () => (await api.call('POST', `/subscriptions/${name}/test`, user)).json

    await t.test('a push of the hub', async (t) => {
      t.match(await test(), { delivered: false, delivery: { status: 503 } }, 'not in the list yet')
      await list()
      await publish('Eins für alle')
      await program.line(/^de\.org\.hub\.v1\.radio\.track\.playing Eins für alle$/)
      await hub.until(async () => (await statuses(name))[0] === 201)
      t.match(await test(), { delivered: true, delivery: { status: 201 } })
    })

    await t.test('a push with a key that the hub has just made', async (t) => {
      await hub.ask('keys.rotate', { dropOld: true })
      await logIn()
      // The receiver may have fetched the keys within the last second.
      await hub.until(async () => Object(await test()).delivered === true)
      t.match(await test(), { delivered: true, delivery: { status: 201 } })
    })

    await t.test('a push for another account', async (t) => {
      await list({ serviceAccount: 'somebody@else.example' })
      t.match(await test(), { delivered: true, delivery: { status: 204 } })
    })

    // The recorder gets a push of the event `Two`. The tests below post that push to the example receiver.
    await subscribe(recorder.url())
    const before = (await statuses(name)).length
    await publish('Two')
    await recorder.until((received) => received.length === 1)
    // Wait until the example receiver has ignored this event: the receiver's list still names another service account.
    await hub.until(async () => (await statuses(name)).length > before)
    const [pushed] = recorder.received
    if (!pushed) throw new Error('nothing arrived')
    const genuine = String(pushed.headers.authorization).replace('Bearer ', '')
    const send = async (token: string, body: unknown = pushed.body) => {
      const authorization = token === '' ? {} : { authorization: `Bearer ${token}` }
      return (await post('POST', '/', { body, headers: authorization })).status
    }
    const printed = () => program.lines.filter((line) => line.endsWith('Two')).length

    await t.test('tokens', async (t) => {
      await list()
      const claims = decodeJwt(genuine)
      const header = { ...decodeProtectedHeader(genuine), alg: 'RS256' }
      const { privateKey } = await generateKeyPair('RS256')
      const forge = (changed: object = {}, head: object = {}) =>
        new SignJWT({ ...claims, ...changed }).setProtectedHeader({ ...header, ...head }).sign(privateKey)
      const [head = '', payload = '', signature = ''] = genuine.split('.')
      const changed = Buffer.from(JSON.stringify({ ...claims, email: 'x@y.example' })).toString('base64url')
      const bad: [what: string, token: string][] = [
        ['none', ''],
        ['no token at all', 'x'],
        ['random bytes', randomBytes(300).toString('base64url')],
        ['signed by somebody else', await forge()],
        ['without the name of the key', await forge({}, { kid: undefined })],
        ['of another issuer', await forge({ iss: 'https://else.example' })],
        ['not signed', new UnsecuredJWT(claims).encode()],
        [
          'signed with a shared secret',
          await new SignJWT(claims)
            .setProtectedHeader({ ...header, alg: 'HS256' })
            .sign(Buffer.from(header.kid ?? '')),
        ],
        ['changed', `${head}.${changed}.${signature}`],
        ['cut off', `${head}.${payload}.`],
        ['of a user', user.token],
      ]
      for (const [what, token] of bad) t.equal(await send(token), 204, what)
      t.equal(await send(await forge({}, { kid: 'x' })), 503, 'with a key that it does not have')
      await list({ url: 'https://localhost/elsewhere' })
      t.equal(await send(genuine), 204, 'for another audience')
      await list({ serviceAccount: 'somebody@else.example' })
      t.equal(await send(genuine), 204, 'with another email')
      t.equal(printed(), 0, 'nothing of it was done')
      await list()
      t.equal(await send(genuine), 201)
    })

    await t.test('messages', async (t) => {
      t.equal(await send(genuine), 201)
      t.equal(await send(genuine), 201)
      t.equal(printed(), 1, 'a repetition is not done again')
      t.equal(await send(genuine, { ...pushed.body, subscription: 'unknown' }), 503)
      const broken = { ...pushed.body.message, messageId: '2', data: 'bm8ganNvbg==' }
      t.equal(await send(genuine, { ...pushed.body, message: broken }), 503, 'handling it fails')
      for (const body of ['{', 'null', '{}', '']) t.equal(await send(genuine, body), 503, body)
      t.equal(await send(genuine), 201, 'it goes on')
    })

    await t.test('the hub is away', async (t) => {
      await hub.close()
      const { privateKey } = await generateKeyPair('RS256')
      const header = { ...decodeProtectedHeader(genuine), alg: 'RS256', kid: 'new' }
      const unknown = await new SignJWT(decodeJwt(genuine)).setProtectedHeader(header).sign(privateKey)
      t.equal(await send(unknown), 503, 'nobody knows whether it is genuine')
      t.equal(await send(genuine), 201, 'this key is known')
    })
  })
}

t.test('how large a push can be, and the check for those who come from elsewhere', async (t) => {
  const { home, recorder, hub, api, user, subscribe } = await start(t)
  await subscribe(recorder.url())
  // Numbers such as 9e15 get longer when the hub completes an event, which may gain 64 KiB beyond the largest payload.
  const numbers = `[${Array.from({ length: 5_400 }, () => '9e15')}]`
  const event = JSON.stringify(
    playing(station(), { contributors: [{ name: 'a', role: 'artist', x: '', n: 0 }] }),
  )
  const fill = 'x'.repeat(409_600 - Buffer.byteLength(event) - numbers.length)
  const body = event.replace('"x":""', `"x":"${fill}"`).replace('"n":0', `"n":${numbers}`)
  const path = '/events/de.org.hub.v1.radio.track.playing'
  const { status, json } = await api.call('POST', path, { ...user, body })
  t.equal(status, 201, JSON.stringify(json).slice(0, 300))
  await recorder.until((received) => received.length === 1)
  const [pushed] = recorder.received
  const bytes = Number(pushed?.headers['content-length'])
  t.ok(bytes > 630_000 && bytes < 1_000_000, `${bytes} bytes`)
  t.match(page, /The largest have less than \*\*1,000,000 bytes\*\*/)

  const token = String(pushed?.headers.authorization).replace('Bearer ', '')
  const code = `${codeBlock(page, 'js', 'jwtVerify(idToken')}
    const [token, url, serviceAccount] = process.argv.slice(2)
    verifyPush(token, { url, serviceAccount }).then(
      () => console.log('genuine'),
      (error) => console.log('refused', error.code ?? error.message),
    )`
  await writeFile(join(home, 'verify.mjs'), code)
  await symlink(projectFile('node_modules'), join(home, 'node_modules'))
  const account = 'publisher@hub.example'
  for (const [url, serviceAccount, said] of [
    [recorder.url(), account, /^genuine$/],
    [recorder.url('/else'), account, /^refused ERR_JWT_CLAIM_VALIDATION_FAILED$/],
    [recorder.url(), 'a@b.example', /^refused signed for publisher@hub\.example$/],
  ] as const) {
    const env = { HUB: `https://localhost:${hub.httpsPort}`, NODE_EXTRA_CA_CERTS: hub.caPath }
    const command = [process.execPath, 'verify.mjs', token, url, serviceAccount]
    t.ok(await startProgram(t, command, { cwd: home, env }).line(said), `${said}`)
  }
})

t.test('the example of a push is one', async (t) => {
  const example = JSON.parse(codeBlock(page, 'json', '"publishTime"'))
  const { data, attributes, messageId, publishTime } = example.message
  const body = pushBody({
    data: Buffer.from(data, 'base64'),
    attributes,
    messageId,
    publishedAt: Date.parse(publishTime),
    subscription: example.subscription,
  })
  t.strictSame(JSON.parse(body.toString()), example)
  t.equal(JSON.parse(Buffer.from(data, 'base64').toString()).event, attributes.event)
})

t.test('numbers', async (t) => {
  const loaded = loadConfig({}, '/')
  if ('problems' in loaded) throw new Error(loaded.problems.join())
  const { ageMs, deadLetterAgeMs, deadLettersPerQueue } = workLimits
  const text = page.replaceAll('\n', ' ')
  const between = (failures: number) =>
    [0, 1].map((part) => backOff(failures, () => part) / 1_000).join(' to ')
  for (const sentence of [
    `not acknowledged for ${ageMs / dayMs} days`,
    `kept for ${deadLetterAgeMs / dayMs} days, ${deadLettersPerQueue.toLocaleString('en')} for each`,
    `At most ${loaded.config.workQueueLimit.toLocaleString('en')} messages wait`,
    `last ${keptAttempts} tries`,
    `tries again after ${between(1)} seconds, then ${between(2)}, ${between(3)} …`,
    `up to ${backOff(30, () => 1) / 60_000} minutes`,
  ]) {
    t.ok(text.includes(sentence), sentence)
  }
})

/** Starts a node with a user and a topic, and a receiver that only records what it gets. */
async function start(t: Test) {
  const home = await temporaryDirectory(t)
  const recorder = await startReceiver(t, home)
  const hub = await startTestHub(t, pushing(recorder), home)
  const api = await openApi(t, hub)
  const user = { token: '' }
  const logIn = async () => {
    user.token = (await addUser(hub, api, own)).token
  }
  await logIn()
  const publish = (title: string) => {
    const body = playing(station(), { title })
    return api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { ...user, body })
  }
  await publish('makes the topic')

  async function subscribe(url: string): Promise<{ name: string }> {
    const body = { type: 'PUBSUB', method: 'PUSH', url, contact: 'a@b.example', topic: station().id }
    const { status, json } = await api.call('POST', '/subscriptions', { ...user, body })
    t.equal(status, 201)
    return { name: String(json.name) }
  }

  /** Writes the list of subscriptions that the example receiver reads. `changes` are applied to each subscription. */
  async function list(changes: object = {}): Promise<void> {
    const { json } = await api.call('GET', '/subscriptions', user)
    const subscriptions = Array.isArray(json) ? json : []
    const changed = subscriptions.map((one) => ({ ...one, ...changes }))
    await writeFile(join(home, 'subscriptions.json'), JSON.stringify(changed))
  }
  return { home, recorder, hub, api, user, logIn, publish, subscribe, list }
}

async function startReceiverOf(
  t: Test,
  home: string,
  hub: { httpsPort: number; caPath: string },
  { language, command, having }: (typeof receivers)[number],
) {
  await writeFile(join(home, command[1]), codeBlock(page, language, having))
  // The receiver finds `jose` there, as after `npm install jose`.
  await symlink(projectFile('node_modules'), join(home, 'node_modules'))
  const program = startProgram(t, command, {
    cwd: home,
    env: {
      HUB: `https://localhost:${hub.httpsPort}`,
      HOOK_PORT: '0',
      CERT: 'receiver-certs/server.pem',
      KEY: 'receiver-certs/server-key.pem',
      NODE_EXTRA_CA_CERTS: hub.caPath,
      SSL_CERT_FILE: hub.caPath,
      PYTHONUTF8: '1',
    },
  })
  const [, port] = await program.line(/^listening on port (\d+)$/)
  return { ...program, port: Number(port) }
}

function hasJwt(program: string): boolean {
  try {
    execFileSync(program, ['-c', 'import cryptography, jwt'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
