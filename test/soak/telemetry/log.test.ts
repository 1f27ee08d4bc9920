import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, existsSync, openSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { call } from '../../../cli/connection.ts'
import { createLogOutput, sendToFile } from '../../../telemetry/log-output.ts'
import { connectPublisher } from '../../clients.ts'
import { compiledServer } from '../../compiled-server.ts'
import { playing, station } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { onRedis } from '../../redis-server.ts'
import { shareSigningKeyOn } from '../../signing-key.ts'
import { type Issued, temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'
import { workersOn } from '../workers/start-workers.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

t.test('a line is written when its turn is over, many in a short time together', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const pauseMs = 60_000
  const written: string[] = []
  const output = createLogOutput(
    () => t.fail('nothing is lost'),
    (text) => {
      written.push(text)
      return true
    },
    pauseMs,
  )
  output.write('1\n')
  output.write('2\n')
  t.same(written, [], 'not before the turn is over')
  await new Promise(setImmediate)
  t.same(written, ['1\n2\n'])
  output.write('3\n')
  await new Promise(setImmediate)
  output.write('4\n')
  t.same(written, ['1\n2\n'], 'not before the pause is over')
  mock.timers.tick(pauseMs)
  t.same(written, ['1\n2\n', '3\n4\n'])
  output.write('5\n')
  output.flushSync()
  t.same(written, ['1\n2\n', '3\n4\n', '5\n'])
})

t.test(
  'lines that could not be written are counted, and that is said when there is room again',
  async (t) => {
    let hasRoom = true
    const told: number[] = []
    const output = createLogOutput(
      (lines) => told.push(lines),
      () => hasRoom,
    )
    const log = (...lines: string[]) => {
      for (const line of lines) output.write(line)
      output.flushSync()
    }
    log('1', '2')
    hasRoom = false
    log('3', '4')
    log('5')
    t.same(told, [])
    hasRoom = true
    log('6')
    log('7')
    t.same(told, [3])
  },
)

t.test('a line that a full disk cut short stands alone', async (t) => {
  const disk = { content: '', room: 0 }
  const output = createLogOutput(
    () => {},
    sendToFile((bytes) => {
      const part = bytes.subarray(0, disk.room)
      if (part.length === 0) throw new Error('ENOSPC')
      disk.content += part
      disk.room -= part.length
      return part.length
    }),
  )
  const log = (line: string, room: number) => {
    disk.room = room
    output.write(line)
    output.flushSync()
  }
  log('cut short\n', 3)
  log('lost\n', 0)
  log('cut short again\n', 4)
  log('whole\n', 100)
  log('only its last byte is missing\n', 29)
  log('only the end of the line before\n', 1)
  log('next\n', 100)
  t.equal(disk.content, 'cut\ncut\nwhole\nonly its last byte is missing\nnext\n')
})

t.test('a log that nobody reads holds up nobody', async (t) => {
  const hub = await startWithLog(t, 'pipe')
  await hub.logs(1000)
  t.equal((await hub.publisher.publish(playing(livestream))).outcome, 'published')
  t.equal(await hub.stop(), 0)
})

t.test('lines are lost, and said to be, when nobody reads for long', async (t) => {
  const hub = await startWithLog(t, 'pipe')
  await hub.logs(6000)
  const said = hub.read(({ msg }) => String(msg).startsWith('log lines were lost'))
  // The hub reports the lost lines with the first line that finds room again.
  let line: Record<string, unknown> | undefined
  while (!line) line = await Promise.race([said, hub.logs(1).then(() => undefined)])
  const { lines } = line
  t.ok(typeof lines === 'number' && lines > 0 && lines < 6000, `${lines} lines`)
  t.equal(await hub.stop(), 0)
})

onRedis('lines of two workers are whole, however late they are read', async (t, redis) => {
  await shareSigningKeyOn(redis.url)
  const hub = await startWithLog(t, 'pipe', workersOn(redis.url))
  const others = [await hub.enter(), await hub.enter()]
  await Promise.all([hub, ...others].map(({ logs }) => logs(1000)))
  const reading = hub.read(({ msg }) => msg === 'stopping')
  t.equal(await hub.stop(), 0)
  t.match(await reading, { signal: 'SIGTERM' }, 'each line before was JSON')
})

t.test('a full disk below the output, or a reader that has gone, changes nothing else', async (t) => {
  for (const target of ['/dev/full', 'closed pipe'] as const) {
    const hub = await startWithLog(t, target)
    await hub.logs(10)
    t.equal((await hub.publisher.publish(playing(livestream))).outcome, 'published', target)
    t.equal(await hub.stop(), 0, target)
  }
})

/** Starts a node whose stdout and stderr go to `target`, and connects a publisher. */
async function startWithLog(
  t: Test,
  target: 'pipe' | 'closed pipe' | '/dev/full',
  env: Record<string, string> = {},
) {
  const home = await temporaryDirectory(t)
  const output = target === '/dev/full' ? openSync(target, constants.O_WRONLY) : 'pipe'
  const mqttPort = await freePort()
  const child = spawn(process.execPath, [await compiledServer()], {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      HUB_MQTT_PORT: `${mqttPort}`,
      HUB_HTTPS_PORT: '0',
      HUB_PUBLISH_RATE: '0',
      ...env,
    },
    stdio: ['ignore', output, output],
  })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  if (target === 'closed pipe') {
    child.stdout?.destroy()
    child.stderr?.destroy()
  }
  const socket = join(home, 'data', 'admin.sock')
  await until(async () => (await accepts(mqttPort)) && existsSync(socket))
  const request = { role: 'publisher', label: 'studio', institutions: [institution] }
  const issued = await call(socket, 'credentials.add', request, 'test')
  if ('error' in issued) throw new Error(issued.error.message)
  const broker = { mqttPort, caPath: join(home, 'certs', 'ca.pem') }
  const enter = async () => {
    const publisher = await connectPublisher(t, broker, issued.result as Issued, institution)
    return { publisher, logs: (count: number) => logs(publisher, count) }
  }

  return {
    ...(await enter()),

    /** Connects another publisher. */
    enter,

    /** Reads the log up to the first line that passes, and returns that line. */
    async read(passes: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
      if (!child.stdout) throw new Error('no output')
      for await (const text of createInterface({ input: child.stdout })) {
        const line: Record<string, unknown> = JSON.parse(text)
        if (passes(line)) return line
      }
      throw new Error('no such line')
    },

    async stop(): Promise<number | null> {
      child.kill('SIGTERM')
      const [code] = await exited
      return code
    },
  }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** Makes the node log `count` lines, with invalid events. */
async function logs(
  { client, received }: Awaited<ReturnType<typeof connectPublisher>>,
  count: number,
): Promise<void> {
  for (let rest = count; rest > 0; rest -= 500) {
    const wanted = received.all.length + Math.min(rest, 500)
    for (let sent = received.all.length; sent < wanted; sent++) {
      client.publish(`inbox/${institution}`, 'not JSON')
    }
    await received.until(() => received.all.length >= wanted)
  }
}
