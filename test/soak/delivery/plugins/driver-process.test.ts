import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createDriverProcess, type DriverLimits } from '../../../../delivery/plugins/driver-process.ts'
import { createPlugins } from '../../../../delivery/plugins/plugins.ts'
import { patienceMs } from '../../../patience.ts'
import { temporaryDirectory } from '../../../start-hub.ts'
import { until } from '../../../until.ts'

/* The limits of the process of a driver, with smaller ones than those of a node. */

const limits: Partial<DriverLimits> = { missedLooks: 10, graceMs: 200, heapMb: 64, memoryMb: 400 }

const item = { action: 'plugins.x.event', event: {}, plugin: { type: 'x' }, institutionId: 'i' }

/** Starts a driver with this file. */
async function start(t: Test, file: string, more: Partial<DriverLimits> = {}) {
  const home = await temporaryDirectory(t)
  const path = join(home, 'driver.mjs')
  await writeFile(path, file)
  const ends: string[] = []
  const raw: string[] = []
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => {
    raw.push(line)
    lines.push(JSON.parse(line))
  }
  const driver = createDriverProcess({
    file: path,
    target: { type: 'x', field: 'of its own' },
    limits: { ...limits, ...more },
    log: pino({ level: 'debug' }, { write }).child({ plugin: 'x' }),
    ended: (reason) => ends.push(reason),
  })
  t.teardown(() => driver.close().catch(() => undefined))
  let readies = 0
  driver.start(() => {
    readies++
  })
  const isReady = (times = 1) => until(() => readies >= times)
  const deliver = (attempt = 1, signal = new AbortController().signal) =>
    driver.deliver(item, { messageId: 'm1', attempt, signal })
  return { driver, ends, raw, lines, isReady, deliver }
}

const faults: [what: string, code: string, end: string, reason: RegExp][] = [
  ['loops', 'for (;;);', 'hung', /blocked its event loop for 10 s/],
  ['waits for a program', `execSync('sleep 60')`, 'hung', /blocked its event loop for 10 s/],
  ['logs in a loop', `for (;;) log.info('again')`, 'hung', /blocked its event loop for 10 s/],
  ['fills the heap', 'for (const all = []; ; ) all.push({ all })', 'memory', /more than 64 MB of heap/],
  ['makes a large array', 'new Array(5e7).fill({})', 'memory', /more than 64 MB of heap/],
  ['fills a map', 'for (let n = 0, all = new Map(); ; n++) all.set(n, n)', 'memory', /MB of heap/],
  [
    'fills buffers',
    'for (const all = []; ; await later(5)) all.push(Buffer.alloc(1e7, 1))',
    'memory',
    /more than 400 MB of memory/,
  ],
]
t.jobs = 3
for (const [what, code, end, reason] of faults) {
  t.test(`a driver that ${what} is ended, and starts again`, { timeout: 120_000 }, async (t) => {
    const { driver, ends, lines, isReady, deliver } = await start(
      t,
      `import { execSync } from 'node:child_process'
import { setTimeout as later } from 'node:timers/promises'
export default (target, { log }) => ({ async deliver(item, { attempt }) { if (attempt === 1) { ${code} } } })`,
      // It takes long until a heap is full.
      end === 'memory' ? { missedLooks: 60 } : {},
    )
    await isReady()
    const outcome = await deliver()
    t.match(outcome, { result: 'refused', status: null, reason: /^the driver ended: / })
    t.match(outcome?.reason, reason)
    t.same(ends, [end])
    t.match(driver.state(), { state: 'down', ends: 1, lastEnd: { at: /^20/, reason } })
    await isReady(2)
    t.match(driver.state(), { state: 'running', ends: 1 })
    t.match(await deliver(2), { result: 'acknowledged' })
    t.match(
      lines.filter(({ msg }) => String(msg).startsWith('plugin driver ended')),
      [{ level: 50, reason, startsInMs: Number }],
    )
  })
}

t.test('a driver that heeds its signal goes on, and one that does not is ended', async (t) => {
  const file = `export default () => ({
  deliver: (item, { attempt, signal }) => new Promise((resolve, reject) => {
    if (attempt === 4) resolve()
    if (attempt === 1) signal.addEventListener('abort', () => reject(signal.reason))
  }),
})`
  const heeding = await start(t, file, { attemptMs: 500, graceMs: patienceMs })
  await heeding.isReady()
  t.match(await heeding.deliver(1), { result: 'failed', reason: 'no answer within 0.5 s' })
  t.same(heeding.ends, [])

  const { ends, isReady, deliver } = await start(t, file, { attemptMs: 5_000 })
  await isReady()
  const second = deliver(2)
  const third = deliver(3)
  t.match(await deliver(4), { result: 'acknowledged' }, 'side by side')
  t.match(await second, { result: 'refused', reason: /did not end an attempt after its signal/ })
  t.match(await third, { result: 'failed', reason: 'the driver ended because of another item' })
  t.same(ends, ['late'])
})

t.test('why a driver has ended is told, though an item was on its way to it', async (t) => {
  const file = join(await temporaryDirectory(t), 'pid')
  const { driver, isReady, deliver } = await start(
    t,
    `import { renameSync, writeFileSync } from 'node:fs'
const file = ${JSON.stringify(file)}
export default () => ({
  deliver: () => {
    writeFileSync(file + '.new', String(process.pid))
    renameSync(file + '.new', file)
    setTimeout(() => { throw new Error('its own fault') })
    return new Promise(() => {})
  },
})`,
  )
  await isReady()
  const first = deliver(1)
  // The test reads nothing meanwhile. A process that has ended is a zombie, without threads, until its end is read.
  const late = performance.now() + patienceMs
  const hasEnded = () => {
    const process = existsSync(file) && `/proc/${readFileSync(file)}`
    if (!process || readdirSync(`${process}/task`).length > 1) return false
    return / Z /.test(readFileSync(`${process}/stat`, 'utf8'))
  }
  while (!hasEnded() && performance.now() < late);
  const second = deliver(2)
  for (const outcome of [await first, await second]) t.match(outcome?.reason, /its own fault/)
  t.match(driver.state().lastEnd, { reason: /its own fault/ })
})

t.test('a stop ends an attempt at once, and tells the driver', async (t) => {
  const { isReady, lines, deliver } = await start(
    t,
    `export default (target, { log }) => ({
  deliver: (item, { signal }) => new Promise(() => signal.addEventListener('abort', () => log.info(signal.reason.message))),
})`,
    { graceMs: 60_000 },
  )
  await isReady()
  const stopping = new AbortController()
  const hanging = deliver(1, stopping.signal)
  stopping.abort()
  t.match(await hanging, { result: 'failed', reason: 'the hub is stopping' })
  t.match(await deliver(2, stopping.signal), { result: 'failed', reason: 'the hub is stopping' })
  await until(() => lines.some(({ msg }) => msg === 'the hub is stopping'))
})

t.test('an attempt leaves no timer behind', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const { isReady, deliver } = await start(t, 'export default () => ({ async deliver() {} })')
  await isReady()
  const before = timers()
  for (let count = 0; count < 50; count++) t.match(await deliver(), { result: 'acknowledged' })
  t.ok(timers() < before + 50)
})

t.test('an item whose attempt never ends is to blame, so that it can step aside', async (t) => {
  const { driver, isReady } = await start(
    t,
    `export default () => ({ deliver: ({ event }) => { if (event.loops) for (;;); return new Promise(() => {}) } })`,
    { attemptMs: 100 },
  )
  const target = { type: 'x', autoEnable: false }
  const log = pino({ level: 'silent' })
  const { targetOf } = createPlugins({ targets: [target], driverOf: () => driver, log })
  for (const [nth, event] of [{}, { loops: true }].entries()) {
    await isReady(nth + 1)
    const found = targetOf('plugins.x')
    if (typeof found !== 'object' || !('deliver' in found)) throw new Error('no target')
    const times = { position: 1, sequence: 1, enqueuedAt: 1, seen: 0, tries: 0, refusals: 0, attempts: [] }
    const work = { ...times, messageId: 'm', details: { institutionId: 'i' } }
    const payload = Buffer.from(JSON.stringify(event))
    const outcome = await found.deliver(work, payload, new AbortController().signal)
    t.match(outcome, { result: 'refused', reason: /^the driver ended: it did not end an attempt/ })
  }
})

t.test('what a driver has started ends with it', async (t) => {
  const { isReady, lines, deliver } = await start(
    t,
    `import { spawn } from 'node:child_process'
export default (target, { log }) => ({
  deliver() {
    const { pid } = spawn('sleep', ['300'], { stdio: 'inherit' })
    log.info({ pid }, 'started')
    setTimeout(() => process.exit(3), 100)
    return new Promise(() => {})
  },
})`,
  )
  await isReady()
  t.match(await deliver(), { result: 'refused', reason: /exit code 3/ })
  const pid = Number(lines.find(({ msg }) => msg === 'started')?.['driver.pid'])
  t.ok(pid > 0)
  await until(() => !isAlive(pid))
})

const unusable: [what: string, file: string, reason: RegExp][] = [
  ['does not parse', 'export default {', /cannot be loaded: Unexpected/],
  ['exports no function', 'export default 1', /no default export that is a function/],
  ['makes nothing', 'export default () => {}', /no object with a function "deliver"/],
  ['throws', `export default () => { throw new Error('no key') }`, /^no key$/],
  ['throws when loaded', `throw new Error('no licence')`, /cannot be loaded: no licence/],
  ['waits for ever', 'await new Promise(() => {})\nexport default () => {}', /not ready within 3 s/],
  ['never gets ready', 'export default () => new Promise(() => {})', /not ready within 3 s/],
]
for (const [what, file, reason] of unusable) {
  t.test(`a driver that ${what} is down, and tried again after growing pauses`, async (t) => {
    const { driver, ends, lines } = await start(t, file, isLate(reason) ? { startMs: 3_000 } : {})
    await until(() => ends.length >= 2)
    t.match(driver.state().lastEnd?.reason, reason)
    const told = lines.filter(({ msg }) => msg === 'plugin driver ended')
    t.match(told[0], { level: 50, startsInMs: Number, reason })
    t.ok(Number(told[1]?.startsInMs) > Number(told[0]?.startsInMs), 'the pause grows')
    t.equal(told[1]?.level, 20, 'and is told of once')
  })
}

t.test('a driver gets its target, has no environment, and its errors are told', async (t) => {
  process.env.HUB_TEST_SECRET = 'of the node'
  t.teardown(() => delete process.env.HUB_TEST_SECRET)
  const { lines, isReady, deliver } = await start(
    t,
    `export default async (target, { log }) => {
  const { TZ, ...env } = process.env
  log.child({ part: 'a' }).warn({ target, env, err: new Error('of mine'), send: typeof process.send }, 'made')
  log.debug('x'.repeat(20_000))
  return { deliver() { console.log('a line\\nanother'); throw new Error('not today') }, close() { throw new Error('not closed') } }
}`,
  )
  await isReady()
  t.match(
    lines.find(({ msg }) => msg === 'made'),
    {
      level: 40,
      part: 'a',
      env: {},
      send: 'undefined',
      err: { message: 'of mine' },
      target: { type: 'x', field: 'of its own' },
    },
  )
  t.same(lines.find(({ msg }) => msg === 'made')?.env, {})
  t.match(
    lines.find(({ characters }) => Number(characters) > 20_000),
    { level: 20, msg: /^x{1000}$/ },
  )
  t.same(await deliver(), { result: 'failed', status: null, reason: 'not today' })
  await until(() => lines.filter(({ msg }) => msg === 'plugin driver wrote').length === 2)
})

t.test('an outcome that cannot be read ends the driver, and not the hub', async (t) => {
  const { ends, isReady, deliver } = await start(
    t,
    `import { writeSync } from 'node:fs'
const said = { kind: 'outcome', id: 1, outcome: { result: 'failed', reason: { toString: 1 } } }
export default () => ({
  deliver() {
    writeSync(3, JSON.stringify(said) + '\\n')
    return new Promise(() => {})
  },
})`,
  )
  await isReady()
  t.match(await deliver(), { result: 'refused', reason: /what is no message of a driver/ })
  t.same(ends, ['error'])
})

t.test('a line of a driver keeps the level, the time and the name that the hub gives it', async (t) => {
  const { raw, isReady } = await start(
    t,
    `export default (target, { log }) => {
  log.child({ plugin: 'other' }).warn({ level: 'loud', time: 1, pid: 2, hostname: 'else', title: 'Ebbe' }, 'made')
  return { deliver() {} }
}`,
  )
  await isReady()
  const [line = ''] = raw.filter((text) => text.includes('"made"'))
  for (const name of ['level', 'time', 'pid', 'hostname', 'plugin'])
    t.equal(line.split(`"${name}":`).length, 2, `${name} is there once`)
  t.match(JSON.parse(line), {
    level: 40,
    pid: process.pid,
    plugin: 'x',
    title: 'Ebbe',
    'driver.level': 'loud',
    'driver.time': 1,
    'driver.pid': 2,
    'driver.hostname': 'else',
    'driver.plugin': 'other',
  })
})

const closings: [what: string, code: string, problem: RegExp | undefined][] = [
  ['closes', '', undefined],
  ['throws', `throw new Error('not today')`, /not today/],
  ['never ends', 'return new Promise(() => {})', /not closed in time/],
  ['blocks', 'for (;;);', /not closed in time/],
]
for (const [what, code, problem] of closings) {
  t.test(`at the stop, a driver that ${what} ends`, async (t) => {
    const { driver, ends, isReady } = await start(
      t,
      `export default () => ({ deliver() {}, close() { ${code} } })`,
      { closeMs: problem?.source.includes('in time') ? 500 : patienceMs },
    )
    await isReady()
    const closed = Promise.resolve(driver.close?.())
    if (problem) await t.rejects(closed, { message: problem })
    else await closed
    t.same(ends, [], 'this is no fault')
  })
}

/** Whether a driver is waited for, until its time is over. */
function isLate(reason: RegExp): boolean {
  return reason.source.includes('within')
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
