import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { createMailTransport } from '../../bridge-https/users/mail-transport.ts'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { openCaFiles } from '../../config/ca-files.ts'
import { loadConfig } from '../../config/config.ts'
import { createWebhooks } from '../../delivery/webhook/webhook.ts'
import { createFeedFetch } from '../../validator/feed/fetch-by-ca.ts'
import { startMailServer } from '../bridge-https/users/mail-server.ts'
import { listen } from '../listen.ts'

type Pair = Awaited<ReturnType<typeof ensureDevelopmentCertificates>>

t.test('servers behind a private CA, which is replaced', async (t) => {
  const directory = t.testdir()
  const pairs = await Promise.all(
    ['before', 'after'].map((name) => ensureDevelopmentCertificates(join(directory, name))),
  )
  const [before, after] = pairs
  if (!before || !after) throw new Error('no certificates')
  const path = join(directory, 'ca.pem')
  const use = (pem: string) => writeFileSync(path, pem)
  const pemOf = (pair: Pair) => readFileSync(pair.ca, 'utf8')
  use(pemOf(before))
  const lines: Line[] = []
  const changed = new EventTarget()
  const streamWrite = (line: string) => {
    lines.push(JSON.parse(line))
    changed.dispatchEvent(new Event('line'))
    return ''
  }
  const log = pino({ hooks: { streamWrite } })
  const config = configOf(directory, {
    publicUrl: 'https://hub.example',
    redisUrl: 'rediss://r',
    redis: { ca: path },
    pushCa: path,
    feedCa: path,
    smtp: { host: 'localhost', from: 'hub@hub.example', ca: path },
  })
  const cas = await openCaFiles(config, log, 10)
  t.teardown(() => cas.close())
  /** Waits until all four settings have logged what became of the replaced file. */
  const replaced = async () => {
    while (lines.length < 4) await once(changed, 'line')
    return lines.splice(0)
  }

  const feed = createFeedFetch(cas.feed)
  const webhooks = createWebhooks({ allowPrivate: true, ca: cas.push, userAgent: 'test' })
  t.teardown(() => webhooks.close())
  const mails = await startMailServer(t)
  const servers = async (pair: Pair) => ({
    feedUrl: `https://localhost:${await startServer(t, pair, (_, response) => response.end('{"items":[]}'))}`,
    pushUrl: `https://localhost:${await startServer(t, pair, (_, response) => response.writeHead(204).end())}`,
    mailPort: await startTlsProxy(t, pair, mails.port),
  })
  const [old, young] = [await servers(before), await servers(after)]
  /** What each client says. */
  const tell = async ({ feedUrl, pushUrl, mailPort }: typeof old) => {
    const server = { host: 'localhost', port: mailPort, secure: true, from: 'hub@hub.example', ca: cas.smtp }
    const call = {
      body: Buffer.from('{}'),
      token: 'x',
      deadlineMs: 60_000,
      signal: new AbortController().signal,
    }
    return {
      feed: await feed(feedUrl).then(
        (answer) => answer.text(),
        (error: Error) => (error.cause instanceof Error ? error.cause.message : error.message),
      ),
      push: (await webhooks.post({ url: pushUrl, ...call })).reason,
      smtp: await createMailTransport(server)({ to: 'a@b.example', subject: 's', lines: [] }).then(
        () => 'mailed',
        (error: Error) => error.message,
      ),
    }
  }
  const trusted = { feed: '{"items":[]}', push: null, smtp: 'mailed' }
  const untrusted = {
    feed: /certificate.*; HUB_FEED_CA may name a CA to trust$/,
    push: /certificate.*; HUB_PUSH_CA may name a CA to trust$/,
    smtp: /certificate.*; smtp\.ca may name a CA to trust$/,
  }

  t.strictSame(await tell(old), trusted)
  t.match(await tell(young), untrusted)
  use('no certificate')
  t.match(
    (await replaced()).map(({ setting, msg }) => `${setting}: ${msg}`).toSorted(),
    ['HUB_FEED_CA', 'HUB_PUSH_CA', 'redis.ca', 'smtp.ca'].map(
      (setting) => `${setting}: the replaced CA cannot be used, the old one stays`,
    ),
  )
  t.strictSame(await tell(old), trusted)
  use(pemOf(after))
  t.match(await replaced(), Array(4).fill({ msg: 'CA replaced' }))
  t.strictSame(await tell(young), trusted)
  t.match(await tell(old), untrusted, 'also where a connection was kept')
  t.equal(cas.redis?.(), pemOf(after))
})

t.test('a replaced CA that a listener cannot use is not in use, as the log says', async (t) => {
  const directory = t.testdir()
  const [before, after] = await Promise.all(
    ['before', 'after'].map((name) => ensureDevelopmentCertificates(join(directory, name))),
  )
  if (!before || !after) throw new Error('no certificates')
  const path = join(directory, 'ca.pem')
  const [old, young] = [readFileSync(before.ca, 'utf8'), readFileSync(after.ca, 'utf8')]
  writeFileSync(path, old)
  const lines = new EventTarget()
  let said: Line | undefined
  const streamWrite = (line: string) => {
    said = JSON.parse(line)
    lines.dispatchEvent(new Event('line'))
    return ''
  }
  const cas = await openCaFiles(configOf(directory, { clientCa: path }), pino({ hooks: { streamWrite } }), 10)
  t.teardown(() => cas.close())
  // The files are looked at by a timer that keeps no process alive.
  const alive = setInterval(() => undefined, 60_000)
  t.teardown(() => clearInterval(alive))
  let isRefused = true
  cas.client?.onChange(() => {
    if (isRefused) throw new Error('ca md too weak')
  })
  const replaced = once(lines, 'line')
  writeFileSync(path, young)
  await replaced
  t.match(said, { msg: 'the replaced CA cannot be used, the old one stays', reason: /ca md too weak/ })
  t.equal(cas.client?.current(), old)
  isRefused = false
  const mended = once(lines, 'line')
  writeFileSync(path, `${young}\n`)
  await mended
  t.match(said, { msg: 'CA replaced' })
  t.equal(cas.client?.current(), `${young}\n`)
})

t.test('a feed server that answers with a status that HTTP does not have', async (t) => {
  const pair = await ensureDevelopmentCertificates(t.testdir())
  const ca = readFileSync(pair.ca, 'utf8')
  const port = await startServer(t, pair, ({ socket }) => socket.end('HTTP/1.1 700 X\r\n\r\n{}'))
  await t.rejects(createFeedFetch(() => ca)(`https://localhost:${port}`), { message: /answered 700/ })
})

t.test('a feed may be compressed, with a CA of its own as without', async (t) => {
  const pair = await ensureDevelopmentCertificates(t.testdir())
  const ca = readFileSync(pair.ca, 'utf8')
  const port = await startServer(t, pair, (_, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{"items":[]}')),
  )
  const answer = await createFeedFetch(() => ca)(`https://localhost:${port}`)
  t.equal(await answer.text(), '{"items":[]}')
  const broken = await startServer(t, pair, (_, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end('{"items":[]}'),
  )
  await t.rejects((await createFeedFetch(() => ca)(`https://localhost:${broken}`)).text())
})

t.test('a file that is no certificate is refused with the name of its setting', async (t) => {
  const directory = t.testdir({ 'ca.pem': 'no certificate' })
  const path = join(directory, 'ca.pem')
  const rows: [setting: string, settings: object][] = [
    ['HUB_PUSH_CA', { pushCa: path }],
    ['HUB_FEED_CA', { feedCa: path }],
    ['smtp.ca', { smtp: { host: 'h', from: 'hub@hub.example', ca: path } }],
    ['redis.ca', { redisUrl: 'rediss://r', redis: { ca: path } }],
  ]
  for (const [setting, settings] of rows) {
    const config = configOf(directory, { publicUrl: 'https://hub.example', ...settings })
    const opened = openCaFiles(config, pino({ level: 'silent' }))
    await t.rejects(opened, {
      message: `${setting}: ${JSON.stringify(path)}, expected a certificate in PEM`,
      cause: { message: 'it has none' },
    })
  }
})

interface Line {
  setting: string
  msg: string
}

function configOf(directory: string, settings: object) {
  const path = join(directory, 'hub.json')
  writeFileSync(path, JSON.stringify(settings))
  const loaded = loadConfig({ HUB_CONFIG: path }, '/')
  if ('problems' in loaded) throw new Error(loaded.problems.join())
  return loaded.config
}

async function startServer(t: Test, { cert, key }: Pair, answer: RequestListener): Promise<number> {
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, answer)
  return listen(t, server)
}

/** TLS in front of a server on loopback. */
async function startTlsProxy(t: Test, { cert, key }: Pair, port: number): Promise<number> {
  const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, (near) => {
    const far = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => undefined)
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  server.on('tlsClientError', () => undefined)
  return listen(t, server)
}
