import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { connectPublisher } from '../../clients.ts'
import { codeBlock, readPage, startProgram } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { openLine } from '../../line.ts'
import { hubctlCommand } from '../../root.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'

/* Runs the commands and programs of docs/reading.md as they stand there. */

const [own = ''] = institutions
const page = readPage('reading.md')
const programs = [
  {
    file: 'follow.sh',
    program: codeBlock(page, 'bash', 'usage: follow.sh'),
    starts: codeBlock(page, 'sh', 'bash follow.sh'),
  },
  {
    file: 'follow.py',
    program: codeBlock(page, 'python', 'urlopen'),
    starts: codeBlock(page, 'sh', 'python3 follow.py'),
  },
]

t.test('the commands show what is on air, as a stream, and at a time', async (t) => {
  const { hub, publish } = await startStation(t)
  await publish('Ebbe')
  const [before, now, stream, at] = ['READER=', '/now', '--max-time', '/at/'].map((having) =>
    codeBlock(page, 'bash', having),
  )
  // `npm run -s hubctl -- …`, as it is started here.
  const hubctl = hubctlCommand.map((word) => `'${word}'`).join(' ')
  const npm = `npm() { shift 4; ${hubctl} --socket "$SOCKET" "$@"; }`
  const settings = String(before)
    .replace('localhost:8443', `localhost:${hub.httpsPort}`)
    .replace('certs/ca.pem', hub.caPath)
  const run = (script: string | undefined) =>
    promisify(execFile)('bash', ['-c', `${npm}\n${settings}\n${script}`], {
      env: { ...process.env, SOCKET: hub.adminSocket },
    })
  t.match(JSON.parse((await run(now)).stdout), { title: station().title, playing: { title: 'Ebbe' } })
  t.match(JSON.parse((await run(at)).stdout), { playing: { title: 'Ebbe' } })
  // curl ends with 28: its time is over.
  const cut = await run(stream).catch((error: { code: number; stdout: string }) => error)
  t.match(cut, {
    code: 28,
    stdout: /^retry: \d+\nevent: playing\ndata: .*Ebbe.*\n\nevent: ready\nid: \d+\ndata: /s,
  })
})

for (const { file, program, starts } of programs) {
  t.test(`${file} goes on where it was, without a loss and without a repetition`, async (t) => {
    const { hub, publish } = await startStation(t)
    const line = await openLine(t, hub.httpsPort)
    await publish('Ebbe')
    const running = await start(t, hub, line.port, file, program, starts)
    // Before the program ends: its curl would stay.
    t.teardown(line.cut)
    await running.line(/^ready /)
    await publish('Flut')
    await running.line(/Flut/)
    line.cut()
    await publish('Watt')
    await running.line(/Watt/)
    line.cut()
    await publish('Deich')
    await running.line(/Deich/)
    const titles = running.lines.map((line) => /Ebbe|Flut|Watt|Deich/.exec(line)?.[0]).filter(Boolean)
    t.same(titles, ['Ebbe', 'Flut', 'Watt', 'Deich'])
  })

  t.test(`${file} drops half an event, and does as the hub says`, async (t) => {
    const hub = await startTestHub(t)
    const answers = [
      'retry: 1000\nevent: playing\nid: 4\ndata: {"event":"whole"}\n\n:\nevent: playing\nid: 5\ndata: {"ev',
      'event: playing\nid: 5\ndata: {"event":"again"}\n\nevent: bye\ndata: {}\n\n',
    ]
    const returns: unknown[] = []
    const pem = (name: string) => readFileSync(join(dirname(hub.caPath), name))
    const server = createServer(
      { cert: pem('server.pem'), key: pem('server-key.pem') },
      (request, response) => {
        returns.push(request.headers['last-event-id'] || undefined)
        response.useChunkedEncodingByDefault = false
        response.shouldKeepAlive = false
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(answers[returns.length - 1] ?? '')
        if (returns.length < 3) response.end()
      },
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const running = await start(t, hub, port, file, program, starts)
    // Before the program ends: its curl would stay.
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    await running.line(/again/)
    await hub.until(async () => returns.length >= 3)
    t.same(returns.slice(0, 3), [undefined, '4', '5'])
    t.equal(running.lines.filter((line) => line.startsWith('playing')).length, 2)
  })
}

t.test('follow.sh ends where only a person can help', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const [{ file, program, starts } = { file: '', program: '', starts: '' }] = programs
  const running = await start(t, hub, hub.httpsPort, file, program, starts)
  t.equal(await running.ended, 1)
  t.ok(running.complaints.some((line) => line.includes('401')))
})

async function startStation(t: Test) {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  return {
    hub,
    publish: (title: string) => publisher.publish(playing(station(), { title, playlistItemId: title })),
  }
}

/** Starts a program of the page as the page says. */
async function start(t: Test, hub: TestHub, port: number, file: string, program: string, starts: string) {
  await writeFile(join(hub.home, file), program)
  return startProgram(t, ['bash', '-c', `exec ${starts}`], {
    cwd: hub.home,
    env: {
      PATH: process.env.PATH ?? '',
      BASE: `https://localhost:${port}`,
      LIVESTREAM: station().id,
      CA: hub.caPath,
    },
  })
}
