import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import pino from 'pino'
import t, { type Test } from 'tap'
import { startAdminSocket } from '../../admin/socket.ts'
import { type EventRow, rowOfMessage } from '../../journal/history/event-row.ts'
import { refusal } from '../../operations/errors.ts'
import { createTail } from '../../operations/lookups/event-tail.ts'
import type { Commands } from '../../operations/perform.ts'
import { shortDir } from './short-dir.ts'

const run = promisify(execFile)

t.test('a command is answered with its result', async (t) => {
  const { path } = await start(t, {
    echo: async (args, who) => ({ args, who }),
    nothing: async () => undefined,
  })
  t.strictSame(await post(path, '/echo', { args: { a: 1 }, who: 'kim' }), {
    status: 200,
    body: { result: { args: { a: 1 }, who: 'kim' } },
  })
  t.strictSame(await post(path, '/nothing', { who: 'kim' }), { status: 200, body: { result: null } })
})

t.test('a refusal explains itself, a fault does not', async (t) => {
  const entries: string[] = []
  const { path } = await start(
    t,
    {
      refuse: async () => {
        throw refusal('there is no client "x"')
      },
      break: async () => {
        throw new Error('secret detail')
      },
    },
    entries,
  )
  t.strictSame(await post(path, '/refuse', { who: 'kim' }), {
    status: 409,
    body: { error: { code: 'refused', message: 'there is no client "x"' } },
  })
  t.strictSame(entries, [])
  t.match(await post(path, '/break', { who: 'kim' }), { status: 500, body: { error: { code: 'internal' } } })
  t.notMatch(JSON.stringify(await post(path, '/break', { who: 'kim' })), /secret/)
  t.match(entries[0], /secret detail/, 'the log has it')
})

t.test('what is no command is refused', async (t) => {
  const { path } = await start(t, { echo: async (args) => args })
  const call = { args: {}, who: 'kim' }
  for (const [url, body, status, code] of [
    ['/nothing', call, 404, 'command.unknown'],
    ['/constructor', call, 404, 'command.unknown'],
    ['/__proto__', call, 404, 'command.unknown'],
    ['/%', call, 404, 'command.unknown'],
    ['/', call, 404, 'command.unknown'],
    ['/echo', 'not json', 400, 'request.invalid'],
    ['/echo', '', 400, 'request.invalid'],
    ['/echo', [], 400, 'request.invalid'],
    ['/echo', { args: [], who: 'kim' }, 400, 'request.invalid'],
    ['/echo', { args: {} }, 400, 'request.invalid'],
    ['/echo', { args: {}, who: '' }, 400, 'request.invalid'],
    ['/echo', '{"args":{"label":"\\ud83c"},"who":"kim"}', 400, 'request.invalid'],
    ['/echo', '{"args":{"a":1,"a":2},"who":"kim"}', 400, 'request.invalid'],
    ['/echo', { args: { x: 'x'.repeat(1024 * 1024) }, who: 'kim' }, 413, 'request.size'],
  ] as const) {
    t.match(await post(path, url, body), { status, body: { error: { code } } }, `${url} ${code}`)
  }
  t.match(await post(path, '/echo', '{"args":{"label":"\\ud83c"},"who":"kim"}'), {
    body: { error: { message: /at \.args\.label: .*half a character/ } },
  })
  t.match(await post(path, '/echo', '', 'GET'), {
    status: 405,
    body: { error: { code: 'request.method' } },
  })
  const large = { x: 'x'.repeat(1024 * 1024 - 100) }
  t.strictSame(await post(path, '/echo', { args: large, who: 'kim' }), {
    status: 200,
    body: { result: large },
  })
})

t.test('the socket is for its owner alone and leaves nothing else behind', async (t) => {
  const dir = await shortDir(t)
  const path = join(dir, 'admin.sock')
  const socket = await startAdminSocket({ path, commands: {}, log: pino({ level: 'silent' }) })
  t.equal((await stat(path)).mode & 0o777, 0o600)
  t.strictSame(await readdir(dir), ['admin.sock'])
  await socket.close()
  t.strictSame(await readdir(dir), [])
})

t.test('a missing directory is made', async (t) => {
  const path = join(await shortDir(t), 'data', 'admin.sock')
  const socket = await startAdminSocket({ path, commands: {}, log: pino({ level: 'silent' }) })
  t.teardown(() => socket.close())
  t.ok((await stat(path)).isSocket())
})

t.test('nothing is made beside its directory, where the node may not write', async (t) => {
  const dir = await shortDir(t)
  const data = join(dir, 'data')
  await mkdir(data)
  const before = await stat(dir, { bigint: true })
  const socket = await startAdminSocket({
    path: join(data, 'admin.sock'),
    commands: {},
    log: pino({ level: 'silent' }),
  })
  t.teardown(() => socket.close())
  t.equal((await stat(dir, { bigint: true })).mtimeNs, before.mtimeNs)
})

t.test('a living node keeps its socket', async (t) => {
  const { path } = await start(t, { who: async () => 'the first' })
  await t.rejects(startAdminSocket({ path, commands: {}, log: pino({ level: 'silent' }) }), {
    message: `another node is running on the admin socket ${path}`,
  })
  t.match(await post(path, '/who', { who: 'kim' }), { body: { result: 'the first' } })
})

t.test('the socket of a dead process is replaced', async (t) => {
  const path = join(await shortDir(t), 'admin.sock')
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
  await t.rejects(run(process.execPath, ['--eval', script]))
  t.ok((await stat(path)).isSocket(), 'it left its socket')
  const socket = await startAdminSocket({
    path,
    commands: { ok: async () => 1 },
    log: pino({ level: 'silent' }),
  })
  t.teardown(() => socket.close())
  t.match(await post(path, '/ok', { who: 'kim' }), { body: { result: 1 } })
})

t.test('another file is never replaced', async (t) => {
  const path = join(await shortDir(t), 'admin.sock')
  await writeFile(path, 'precious')
  await t.rejects(startAdminSocket({ path, commands: {}, log: pino({ level: 'silent' }) }), {
    message: /is not a socket/,
  })
})

t.test('the longest path works, a longer one is a clear error', async (t) => {
  const dir = await shortDir(t)
  const deep = join(dir, 'd'.repeat(107 - Buffer.byteLength(join(dir, 'd', 'admin.sock')) + 1))
  await mkdir(deep)
  const log = pino({ level: 'silent' })
  const socket = await startAdminSocket({
    path: join(deep, 'admin.sock'),
    commands: { ok: async () => 1 },
    log,
  })
  t.match(await post(socket.path, '/ok', { who: 'kim' }), { body: { result: 1 } })
  await socket.close()
  await t.rejects(startAdminSocket({ path: join(deep, 'admin2.sock'), commands: {}, log }), {
    message: /longer than 107 bytes/,
  })
})

t.test('closing answers what was asked and does not wait for who asks nothing', async (t) => {
  const asked = deferred()
  const answer = deferred()
  const { socket, path } = await start(t, {
    slow: async () => {
      asked.resolve(undefined)
      return answer.promise
    },
  })
  const idle = connect(path)
  await once(idle, 'connect')
  idle.on('error', () => undefined)
  const reply = post(path, '/slow', { who: 'kim' })
  await asked.promise
  const closed = socket.close()
  answer.resolve('done')
  t.match(await reply, { status: 200, body: { result: 'done' } })
  await closed
  await t.rejects(stat(path), { code: 'ENOENT' })
})

t.test(
  'who follows and does not read is told what was left out, and does not keep the node from closing',
  async (t) => {
    let listener: (row: EventRow) => void = () => undefined
    let following = 0
    const tail = createTail((next) => {
      listener = next
      following++
      return () => void following--
    })
    const { path, socket } = await start(t, { tail: async () => tail(() => true) })
    const sending = request({ socketPath: path, path: '/tail', method: 'POST', agent: false })
    sending.end(JSON.stringify({ who: 'kim' }))
    sending.on('error', () => undefined)
    const [response] = await once(sending, 'response')
    const large = rowOfMessage({
      topic: 'a',
      qos: 1,
      queue: { keep: 'every' },
      position: 1,
      at: 0,
      payload: Buffer.from(JSON.stringify({ title: 'x'.repeat(500) })),
    })
    for (let nth = 0; nth < 20_000; nth++) {
      listener({ ...large, position: nth })
      if (nth % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    const lines = createInterface({ input: response })[Symbol.asyncIterator]()
    const told = async () => JSON.parse((await lines.next()).value)
    for (let expected = 0; ; expected++) {
      const { position, leftOut } = await told()
      if (leftOut !== undefined) {
        t.ok(expected >= 1_000 && leftOut > 0, `${expected} events, and then ${leftOut} left out`)
        break
      }
      t.equal(position, expected)
    }
    t.equal(following, 1)

    const second = request({ socketPath: path, path: '/tail', method: 'POST', agent: false })
    second.on('error', () => undefined)
    second.end(JSON.stringify({ who: 'kim' }))
    await once(second, 'response')
    t.equal(following, 2)
    second.destroy()
    while (following === 2) await new Promise((resolve) => setImmediate(resolve))
    for (let nth = 0; nth < 2_000; nth++) listener(large)
    await socket.close()
    t.equal(following, 0)
  },
)

t.test('a client that often reads too slowly leaves no listeners behind', async (t) => {
  const warnings: string[] = []
  const warned = ({ message }: Error) => warnings.push(message)
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  async function* lines() {
    for (let nth = 0; nth < 40; nth++) yield 'x'.repeat(1_000_000)
  }
  const { path } = await start(t, { tail: async () => lines() })
  const sending = request({ socketPath: path, path: '/tail', method: 'POST', agent: false })
  sending.end(JSON.stringify({ who: 'kim' }))
  const [response] = await once(sending, 'response')
  let bytes = 0
  for await (const chunk of response) bytes += chunk.length
  t.equal(bytes, 40 * 1_000_003)
  await new Promise((resolve) => setImmediate(resolve))
  t.same(warnings, [])
})

t.test('so many follow at the same time, and no more', async (t) => {
  const tail = createTail(() => () => undefined)
  const all = Array.from({ length: 20 }, () => tail(() => true))
  t.throws(() => tail(() => true), /20 others follow events already/)
  await all[0]?.return?.()
  await all[0]?.return?.()
  t.ok(tail(() => true))
  t.throws(() => tail(() => true))
})

async function start(t: Test, commands: Commands, entries: string[] = []) {
  const path = join(await shortDir(t), 'admin.sock')
  const streamWrite = (line: string) => {
    entries.push(line)
    return ''
  }
  const log = pino({ hooks: { streamWrite } })
  const socket = await startAdminSocket({ path, commands, log })
  t.teardown(() => socket.close())
  return { path, socket }
}

async function post(socketPath: string, path: string, body: unknown, method = 'POST') {
  const sending = request({ socketPath, path, method, agent: false, headers: { connection: 'keep-alive' } })
  sending.end(typeof body === 'string' ? body : JSON.stringify(body))
  const [response] = await once(sending, 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  sending.destroy()
  return { status: response.statusCode, body: JSON.parse(text) }
}

function deferred() {
  let resolve: (value: unknown) => void = () => undefined
  const promise = new Promise<unknown>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
