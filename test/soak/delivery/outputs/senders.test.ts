import { once } from 'node:events'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { encodeRds } from '../../../../delivery/carriers/rds.ts'
import { replaceFile } from '../../../../delivery/showing/senders/file.ts'
import { listen } from '../../../listen.ts'
import { first, openOutput, startTitleServer } from '../../../output-receiver.ts'
import { startReceiver } from '../../../receiver.ts'
import { temporaryDirectory } from '../../../start-hub.ts'

t.jobs = 4

t.test('rds: an encoder gets both lines over a connection that ends', async (t) => {
  const got: Buffer[] = []
  const server = createServer((socket) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    // Encoders answer, or do not, and often keep the connection.
    socket.write('OK\r\n')
    socket.on('end', () => got.push(Buffer.concat(chunks)))
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { hub, play, lane } = await openOutput(t, '', {
    driver: 'rds',
    url: undefined,
    host: '127.0.0.1',
    port,
    livestreams: { [first.id]: 'first' },
  })
  await play('Größe', { artist: 'Ä' })
  await hub.until(async () => got.length === 1)
  t.strictSame(got[0], Buffer.concat([encodeRds('RT=Ä - Größe'), Buffer.from('\r\nRTP=4,0,0;1,4,4\r\n')]))
  await hub.until(async () => (await lane()).state === 'shown')

  server.close()
  await play('Nobody hears it')
  await hub.until(async () => (await lane()).state === 'retrying')
  t.match(await lane(), { lastReason: /ECONNREFUSED/ })
})

t.test('dl-plus: the file is replaced as a whole, and comes when its folder does', async (t) => {
  const folder = join(await temporaryDirectory(t), 'dab')
  const { hub, play, lane } = await openOutput(t, '', {
    driver: 'dl-plus',
    url: undefined,
    file: join(folder, '{name}.dls'),
  })
  await play('Größe', { artist: 'Ä' })
  await hub.until(async () => (await lane()).state === 'retrying')
  t.match(await lane(), { lastReason: /ENOENT/ })
  await mkdir(folder)
  await hub.until(async () => (await lane()).state === 'shown')
  const text = () => readFile(join(folder, 'first.dls'), 'utf8')
  t.match(
    await text(),
    /^##### parameters \{ #####\nDL_PLUS=1\n.*DL_PLUS_TAG=1 4 4\n##### parameters \} #####\nÄ - Größe\n$/s,
  )
  const before = /ITEM_TOGGLE=(.)/.exec(await text())?.[1]
  await play('Next')
  await hub.until(async () => (await text()).endsWith('\nNext\n'))
  t.not(/ITEM_TOGGLE=(.)/.exec(await text())?.[1], before, 'another element has another toggle')
  t.strictSame(await readdir(folder), ['first.dls'], 'nothing is left beside it')
  await rm(folder, { recursive: true })
})

t.test('dl-plus: nothing is left beside a file that cannot be replaced', async (t) => {
  const directory = await temporaryDirectory(t)
  await mkdir(join(directory, 'a.dls'))
  await t.rejects(replaceFile({ file: join(directory, 'a.dls'), content: 'x' }))
  t.strictSame(await readdir(directory), ['a.dls'])
})

t.test('radioplayer: an ingest that checks what it gets', async (t) => {
  const ingest = await startIngest(t)
  const { hub, play, lane } = await openOutput(t, `http://127.0.0.1:${ingest.port}/`, {
    driver: 'radioplayer',
    apiKey: 'user:key',
    livestreams: { [first.id]: '2760001' },
  })
  await play('Größe', { artist: 'Ä', length: 200 })
  await hub.until(async () => (await lane('2760001')).state === 'shown')
  t.match(ingest.got, [{ rpuid: '2760001', title: 'Größe', artist: 'Ä', duration: '200' }])
  await play('', { artist: 'Ä' })
  await hub.until(async () => ingest.got.length === 2)
  t.match(ingest.got[1], { title: 'Ä', artist: undefined }, 'the ingest needs a title')
  await play(' ', { artist: null })
  await hub.until(async () => (await lane('2760001')).stale === 1)
  t.match(await lane('2760001'), { state: 'shown', title: '', failed: 0 }, 'and nothing comes without a text')
  await play('Next')
  await hub.until(async () => ingest.got.length === 3)
  t.match(ingest.got[2], { title: 'Next' })
})

t.test('an element without artist and title shows the idle text', async (t) => {
  const server = await startTitleServer(t)
  const url = `http://127.0.0.1:${server.port}/{name}?t={text}`
  const { hub, play, lane } = await openOutput(t, url, { idle: 'Küstenfunk 1' })
  await play('One')
  await hub.until(async () => server.texts('first').length === 1)
  await play('\u200b ')
  await hub.until(async () => (await lane()).title === 'Küstenfunk 1')
  await play('Two')
  await hub.until(async () => server.texts('first').length === 3)
  t.strictSame(server.texts('first'), ['One', 'Küstenfunk 1', 'Two'])
  t.match(await lane(), { stale: 0 })
})

t.test('url-template: a JSON body over TLS, by the CA of HUB_PUSH_CA, and not without it', async (t) => {
  const receiver = await startReceiver(t, await temporaryDirectory(t))
  const fields = {
    method: 'POST',
    body: '{"song":"{text}","station":"{name}"}',
    headers: { 'x-api-key': 'SECRET' },
    livestreams: { [first.id]: 'first' },
  }
  const url = `https://localhost:${receiver.port}/now`
  const trusting = await openOutput(t, url, fields, { HUB_PUSH_CA: receiver.ca })
  await trusting.play('Größe "7"', { artist: 'Ä' })
  await trusting.hub.until(async () => (await trusting.lane()).state === 'shown')
  t.strictSame(receiver.received[0]?.body, { song: 'Ä - Größe "7"', station: 'first' })
  t.match(receiver.received[0]?.headers, { 'x-api-key': 'SECRET', 'content-type': 'application/json' })
  const tested = await trusting.hub.ask('outputs.test', { name: 'web', livestream: first.id })
  t.notMatch(JSON.stringify(tested), 'SECRET')

  const strange = await openOutput(t, url, fields)
  await strange.play('Nobody sees it')
  await strange.hub.until(async () => (await strange.lane()).state === 'retrying')
  t.match(await strange.lane(), { lastReason: /certificate/ })
})

t.test('the answer to a test shows no secret that the other side repeats', async (t) => {
  const server = await startTitleServer(t)
  server.behave((_, response, { url = '', headers }) => {
    response.writeHead(400)
    response.end(`<b>wrong: ${headers.authorization}, ${headers['x-user']}, ${url}</b>`)
  })
  const { hub } = await openOutput(t, `http://127.0.0.1:${server.port}/{name}?t={title}&key=QUERY-SECRET`, {
    headers: { authorization: 'Bearer HEADER-SECRET', 'x-user': 'USER-SECRET' },
  })
  const asked = { name: 'web', livestream: first.id }
  await hub.until(async () => (await hub.ask<{ name: string }[]>('outputs.list')).length > 0)
  const tested = await hub.ask<{ answer: string }>('outputs.test', asked)
  t.match(tested.answer, /^<b>wrong: \*\*\*, \*\*\*, \/first\?t=Test.*&key=\*\*\*<\/b>$/)
  t.notMatch(JSON.stringify([tested, await hub.ask('outputs.log', asked)]), /SECRET/)
})

t.test('icecast: neither the reason nor the answer shows the password', async (t) => {
  const server = await startTitleServer(t)
  server.behave((_, response, { headers }) => {
    const login = String(headers.authorization)
    const [, password = ''] = Buffer.from(login.slice('Basic '.length), 'base64').toString().split(':')
    response.writeHead(400).end(`<b>400 - no ${password} by ${login}</b>`)
  })
  const { hub } = await openOutput(t, `http://127.0.0.1:${server.port}`, {
    driver: 'icecast',
    username: 'admin',
    password: 'hackme',
    livestreams: { [first.id]: '/live' },
  })
  const tested = await hub.ask('outputs.test', { name: 'web', livestream: first.id })
  t.match(tested, { answer: '<b>400 - no *** by ***</b>', reason: 'answered 400: no *** by ***' })
})

/** The ingest of Radioplayer, version 2, as its page describes it. */
async function startIngest(t: Test) {
  const got: Record<string, string>[] = []
  const server = createHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
    const isUser = request.headers.authorization === `Basic ${Buffer.from('user:key').toString('base64')}`
    const isWhole =
      /^\d+$/.test(fields.rpuid ?? '') &&
      (fields.title ?? '') !== '' &&
      [fields.title, fields.artist].every((text = '') => text.length <= 128) &&
      !Number.isNaN(Date.parse(fields.startTime ?? ''))
    const status = request.method !== 'POST' ? 405 : isUser ? (isWhole ? 200 : 400) : 401
    if (status === 200) got.push(fields)
    response.writeHead(status).end()
  })
  const port = await listen(t, server)
  return { got, port }
}
