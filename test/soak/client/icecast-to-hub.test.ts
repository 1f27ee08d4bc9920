import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { promisify } from 'node:util'
import t from 'tap'
import { shareCertificates } from '../../certificates.ts'
import { connect } from '../../clients.ts'
import { startProgram } from '../../documentation.ts'
import { serviceOf, station } from '../../events.ts'
import { startIcecast, withoutIcecast } from '../../icecast-server.ts'
import { listen } from '../../listen.ts'
import { projectFile } from '../../root.ts'
import { startTestHub } from '../../start-hub.ts'
import { folderWithClient } from './client-folder.ts'

const run = promisify(execFile)
const livestream = station(0, 0)
const institution = livestream.institution.id
const example = 'client/examples/icecast-to-hub'

t.test('the example publishes the titles of a mount of Icecast', { skip: withoutIcecast }, async (t) => {
  const icecast = await startIcecast(t)
  await icecast.source('/live.mp3')
  await icecast.source('/utf8.mp3')
  const hub = await startTestHub(t)
  const folder = await folderWithClient(t)
  for (const name of ['icecast-to-hub.mjs', 'titles.mjs'])
    await copyFile(projectFile(join(example, name)), join(folder, name))
  const { username, password } = await hub.publisher([institution])
  const seen = await connect(t, hub, await hub.subscriber('radio/#'))
  await seen.client.subscribeAsync('radio/#', { qos: 1 })
  const program = startProgram(t, [process.execPath, 'icecast-to-hub.mjs'], {
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? '',
      HOST: 'localhost',
      PORT: `${hub.mqttPort}`,
      CA: hub.caPath,
      INSTITUTION: institution,
      PUB_USER: username,
      PUB_PASSWORD: password,
      STREAM: `${icecast.url}/live.mp3`,
      SERVICE: JSON.stringify(serviceOf(livestream)),
    },
  })
  const titles: [charset: string | undefined, song: string, expected: object][] = [
    [undefined, 'Ä Ж - Größe', { artist: 'Ä Ж', title: 'Größe', type: 'music' }],
    [undefined, "It's; a'; b = c", { title: "It's; a'; b = c", type: 'live' }],
    ['UTF-8', 'Ö - Жизнь', { artist: 'Ö', title: 'Жизнь' }],
    [undefined, 'A - B - C', { artist: 'A', title: 'B - C' }],
  ]
  for (const [charset, song, expected] of titles) {
    const said = { song, ...(charset !== undefined && { charset }) }
    await icecast.update('/live.mp3', said)
    const [{ title }] = [expected as { title: string }]
    const arrived = await seen.received
      .until(({ json }) => json.title === title)
      .catch((cause) => {
        throw new Error(`no title ${title}, the program said: ${program.lines.join('; ')}`, { cause })
      })
    t.match(arrived.json, expected)
    await icecast.update('/live.mp3', said)
    // A listener that comes now gets its first block after the next one of the program. Icecast 2.4.4 compares addresses to
    // tell whether a listener has a title: it can lose the title that follows one which the listener never got.
    const { titles: blocks } = await icecast.listener('/live.mp3')
    await hub.until(async () => blocks.length > 0)
  }
  const playing = seen.received.all.filter(({ topic }) => topic.endsWith('/playing'))
  t.equal(playing.length, titles.length, 'each once')
  t.equal(new Set(playing.map(({ json }) => json.playlistItemId)).size, titles.length)
  t.ok(program.lines.every((line) => line.startsWith('published ')))
})

t.test('the reader of titles takes old servers, and says what is wrong with others', async (t) => {
  const { readTitles, titleOf } = await import(projectFile(`${example}/titles.mjs`))
  const serve = async (answer: Buffer | string) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(answer))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const blocks: Buffer[] = []
    const { port } = server.address() as AddressInfo
    await readTitles(`http://127.0.0.1:${port}/x`, (block: Buffer) => blocks.push(block))
    return blocks.map((block) => titleOf(block))
  }
  const block = (text: string, charset: 'utf8' | 'latin1' = 'utf8') => {
    const bytes = Buffer.from(text, charset)
    const length = Math.ceil(bytes.length / 16)
    return Buffer.concat([
      Buffer.from('xxxx'),
      Buffer.from([length]),
      bytes,
      Buffer.alloc(length * 16 - bytes.length),
    ])
  }
  const head = Buffer.from('ICY 200 OK\r\nicy-metaint:4\r\n\r\n')
  t.strictSame(
    await serve(
      Buffer.concat([
        head,
        block("StreamTitle='Größe';"),
        Buffer.from('xxxx\0'),
        block("StreamTitle='Größe';StreamUrl='http://h/';", 'latin1'),
        block("StreamTitle='a';b';StreamUrl='';"),
        block("StreamTitle='';"),
        block("StreamTitle=' - ';"),
        block('nonsense'),
      ]),
    ),
    ['Größe', 'Größe', "a';b", '', '', undefined],
  )
  await t.rejects(serve('HTTP/1.1 404 Not Found\r\n\r\n'), {
    message: 'the server answered HTTP/1.1 404 Not Found',
  })
  await t.rejects(serve('HTTP/1.0 200 OK\r\ncontent-type: audio/ogg\r\n\r\n'), {
    message: /the stream has no titles/,
  })
  await t.rejects(serve('x'.repeat(20_000)), { message: 'the answer has no end' })
})

t.test('the reader of titles reads over https, by name and by address', async (t) => {
  const certs = t.testdir()
  await shareCertificates(certs)
  const secured = {
    cert: await readFile(join(certs, 'server.pem')),
    key: await readFile(join(certs, 'server-key.pem')),
  }
  const program = `import { readTitles, titleOf } from ${JSON.stringify(projectFile(`${example}/titles.mjs`))}
    await readTitles(process.argv[1], (block) => console.log(titleOf(block)))`
  for (const host of ['localhost', '127.0.0.1', '[::1]']) {
    const server = createTlsServer(secured, (socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () =>
        socket.end("ICY 200 OK\r\nicy-metaint:1\r\n\r\nx\u0002StreamTitle='Ebbe und Flut';\0\0\0\0"),
      )
    })
    const port = await listen(t, server, host === '[::1]' ? '::1' : '127.0.0.1')
    const { stdout } = await run(
      process.execPath,
      ['--input-type=module', '-e', program, `https://${host}:${port}/x`],
      {
        env: { NODE_EXTRA_CA_CERTS: join(certs, 'ca.pem') },
      },
    )
    t.equal(stdout, 'Ebbe und Flut\n', host)
  }
})
