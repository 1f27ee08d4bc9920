import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openApi } from '../../../bridge-https/api.ts'
import { connectPublisher } from '../../../clients.ts'
import { institutions, playing, station } from '../../../events.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { askNode, type Issued, temporaryDirectory } from '../../../start-hub.ts'
import { until } from '../../../until.ts'

/*
 * Other people write drivers. Whatever a driver does, the node goes on, the other targets get their items, and the item
 * is tried again.
 */

const [own = ''] = institutions

interface Fault {
  /** What the driver does in its first attempt. */
  code: string
  /** Why its process ends. Undefined: it goes on. */
  ends?: { label: string; reason: RegExp }
}

const faults: Record<string, Fault> = {
  'throws-late': {
    code: `setTimeout(() => { throw new Error('nobody caught this') }, 10); return never`,
    ends: { label: 'error', reason: /nobody caught this/ },
  },
  'throws-later-still': {
    code: `setTimeout(() => { throw new Error('long after the attempt') }, 500)`,
    ends: { label: 'error', reason: /long after the attempt/ },
  },
  socket: {
    code: `connect(1, '127.0.0.1'); return never`,
    ends: { label: 'error', reason: /ECONNREFUSED/ },
  },
  rejection: {
    code: `Promise.reject(new Error('nobody awaits this')); return never`,
    ends: { label: 'error', reason: /nobody awaits this/ },
  },
  'rejects-with-nothing': {
    code: `Promise.reject(undefined); return never`,
    ends: { label: 'error', reason: /originated/ },
  },
  exits: { code: `process.exit(3)`, ends: { label: 'exit', reason: /exit code 3/ } },
  aborts: { code: `process.abort()`, ends: { label: 'exit', reason: /SIGABRT/ } },
  'closes-its-channel': {
    code: `closeSync(3); return never`,
    ends: { label: 'exit', reason: /SIGKILL|exit code/ },
  },
  'sends-nonsense': {
    code: `writeSync(3, 'nonsense\\n'); return never`,
    ends: { label: 'error', reason: /wrote to the hub's channel/ },
  },
  'sends-null': {
    code: `writeSync(3, 'null\\n'); return never`,
    ends: { label: 'error', reason: /wrote to the hub's channel/ },
  },
  'sends-half-an-outcome': {
    code: `writeSync(3, '{"kind":"outcome","id":1}\\n'); return never`,
    ends: { label: 'error', reason: /wrote to the hub's channel/ },
  },
  'sends-no-line-of-a-log': {
    code: `writeSync(3, '{"kind":"log","line":"null"}\\n{"kind":"log","line":"{"}\\n'); return never`,
    ends: { label: 'error', reason: /wrote to the hub's channel/ },
  },
  'sends-without-end': {
    code: `for (;;) { try { writeSync(3, 'x'.repeat(65_536)) } catch {} }`,
    ends: { label: 'error', reason: /wrote to the hub's channel/ },
  },
  'answers-for-others': {
    code: `writeSync(3, '{"kind":"outcome","id":9999,"outcome":{"result":"gone"}}\\n'.repeat(1000)); throw new Error('not today')`,
  },
  'answers-a-thousand-times': {
    code: `for (const id of [1, 2, 3]) writeSync(3, JSON.stringify({ kind: 'outcome', id, outcome: { result: 'failed', status: null, reason: 'no' } }).concat('\\n').repeat(300))`,
  },
  'kills-itself': {
    code: `process.kill(process.pid, 'SIGKILL')`,
    ends: { label: 'exit', reason: /SIGKILL/ },
  },
  'changes-the-process': {
    code: `process.chdir('/'); process.title = 'other'; process.umask(0); process.env.HUB_STAGE = 'prod'
      process.send?.('ready')
      if (Object.keys(process.env).length > 1) throw new Error('it sees the environment')`,
  },
  'returns-much': { code: `return { result: 'failed', reason: 'x'.repeat(1e8), more: Buffer.alloc(1e7) }` },
  'throws-much': { code: `throw new Error('x'.repeat(1e8))` },
  'throws-a-trap': { code: `throw { toString() { throw new Error('trap') } }` },
  'logs-much': {
    code: `for (let count = 0; count < 1e4; count++) log.info({ much: 'x'.repeat(1e4) }, 'much')`,
  },
  'writes-much': {
    code: `for (let count = 0; count < 1e4; count++) { console.log('x'.repeat(100)); console.error('x'.repeat(100)) }`,
  },
  'waits-for-a-program-that-writes-much': {
    code: `execSync('head -c 3000000 /dev/zero', { stdio: 'inherit' })`,
  },
}

const driver = `import { execSync } from 'node:child_process'
import { appendFileSync, closeSync, writeSync } from 'node:fs'
import { connect } from 'node:net'

const never = new Promise(() => {})

export default function createDriver({ type, took }, { log }) {
  log.info({ mine: type }, 'driver is ready')
  const faults = {
${Object.entries(faults)
  .map(([type, { code }]) => `    async '${type}'() { ${code} },`)
  .join('\n')}
  }
  return {
    async deliver({ event }, { attempt }) {
      if (attempt === 1 && event.title === 'first') return faults[type]?.()
      appendFileSync(took, type + ' ' + event.title + '\\n')
    },
  }
}
`

t.test(
  'whatever a driver does, the node goes on, and the item is tried again',
  { timeout: 120_000 },
  async (t) => {
    const home = await temporaryDirectory(t)
    await writeFile(join(home, 'driver.mjs'), driver)
    await writeFile(join(home, 'broken.mjs'), 'export default {')
    const took = join(home, 'took')
    await writeFile(took, '')
    const types = Object.keys(faults)
    const targets = [...types, 'fine'].map((type) => ({ type, driver: 'driver.mjs', took }))
    const plugins = [
      ...targets,
      { type: 'broken', driver: 'broken.mjs' },
      { type: 'none', driver: 'none.mjs' },
    ]
    await writeFile(join(home, 'hub.json'), JSON.stringify({ plugins }))
    const hub = await spawnHub(t, home, { HUB_CONFIG: join(home, 'hub.json'), HUB_LOG_LEVEL: 'info' })
    const { publish, taken, list } = await operate(t, hub, took)
    const named = plugins.map(({ type }) => ({ type }))

    t.equal((await publish('first', named)).outcome, 'published')
    t.equal((await publish('second', named)).outcome, 'published')
    await until(async () => (await taken()).includes('fine second'))
    // Each item is taken once, in order, though its driver ended meanwhile. Where the first attempt took it, the driver
    // has written nothing.
    const seconds = types.map((type) => `${type} second`)
    await until(async () => {
      const all = await taken()
      return seconds.every((line) => all.includes(line))
    })
    await until(async () => (await list()).every(({ name, pending }) => pending === 0 || isBroken(name)))
    const all = await taken()
    t.equal(new Set(all).size, all.length, 'nothing was taken twice')
    for (const type of [...types, 'fine']) {
      const mine = all.filter((line) => line.split(' ')[0] === type)
      t.equal(mine.at(-1), `${type} second`, `${type}: in order`)
    }

    // The drivers that cannot be loaded start again and again.
    let queues = await list()
    await until(async () => {
      queues = await list()
      return queues.every(({ name, driver }) => driver.state === (isBroken(name) ? 'down' : 'running'))
    })
    for (const [type, { ends }] of Object.entries(faults)) {
      const queue = queues.find(({ name }) => name === `plugins.${type}`)
      t.equal(queue?.driver.ends, ends ? 1 : 0, `${type}: ends`)
      if (ends) t.match(queue?.driver.lastEnd?.reason, ends.reason, type)
    }
    for (const type of ['broken', 'none']) {
      const queue = queues.find(({ name }) => name === `plugins.${type}`)
      t.match(queue, { state: 'driver down', pending: 2, lastReason: RegExp(`${type}.mjs cannot be loaded`) })
    }
    const told = (type: string, msg: string) =>
      hub.lines.filter((line) => line.plugin === type && line.msg === msg)
    t.equal(told('fine', 'driver is ready').length, 1)
    t.match(told('socket', 'plugin driver ended'), [{ reason: /ECONNREFUSED/, stack: /./ }])
    t.ok(told('logs-much', 'much').length < 10_000, 'a flood of the log is cut off')
    t.ok(told('logs-much', 'plugin driver logs too much, and lines were left out').length > 0)
    t.ok(told('writes-much', 'plugin driver wrote').length < 1_000, 'and a flood of the output')
    t.ok(told('writes-much', 'plugin driver writes too much, and lines were left out').length > 0)

    const { text } = await (await openApi(t, hub)).call('GET', '/metrics')
    for (const label of ['error', 'exit']) {
      const count = Object.values(faults).filter(({ ends }) => ends?.label === label).length
      t.match(text, `hub_plugin_driver_ends_total{reason="${label}"} ${count}\n`)
    }
    t.match(text, /hub_plugin_driver_ends_total\{reason="load"\} [2-9]/)
    t.equal(await hub.stop('SIGTERM'), 0)
  },
)

function isBroken(name: string): boolean {
  return ['plugins.broken', 'plugins.none'].includes(name)
}

t.test(
  'an item that ends the hub steps aside, and every start reaches "hub ready"',
  { timeout: 120_000 },
  async (t) => {
    const home = await temporaryDirectory(t)
    const took = join(home, 'took')
    await writeFile(took, '')
    const pid = join(home, 'pid')
    await writeFile(
      join(home, 'driver.mjs'),
      `import { appendFileSync, readFileSync } from 'node:fs'
export default ({ took, pid }) => ({
  deliver({ event }) {
    if (event.title === 'deadly') process.kill(Number(readFileSync(pid)), 'SIGKILL') // it throws without a pid
    else appendFileSync(took, event.title + '\\n')
  },
})`,
    )
    const plugins = [{ type: 'deadly', driver: 'driver.mjs', took, pid }]
    await writeFile(join(home, 'hub.json'), JSON.stringify({ plugins }))
    const start = () => spawnHub(t, home, { HUB_CONFIG: join(home, 'hub.json') })
    // Until both events are reported, the driver has no pid and only throws.
    let hub = await start()
    const { publish } = await operate(t, hub, took)
    const named = [{ type: 'deadly' }]
    await publish('deadly', named)
    await publish('behind', named)
    let starts = 0
    for (let isOver = false; !isOver && starts < 10; starts++) {
      if (starts > 0) hub = await start()
      await writeFile(pid, String(hub.pid))
      isOver = await Promise.race([
        hub.ended.then(() => false),
        until(async () => (await readFile(took, 'utf8')) === 'behind\n').then(() => true),
      ])
      await rm(pid)
    }
    t.ok(starts < 8, `it steps aside, after ${starts} starts`)
    const call = () => askNode<Shown[]>(hub.adminSocket, 'queues.list', {})
    await until(async () => (await call())[0]?.aside === 1)
    t.match(await call(), [{ name: 'plugins.deadly', pending: 1, aside: 1 }])
  },
)

t.test('the process of a driver ends with the hub, even when it blocks', { timeout: 120_000 }, async (t) => {
  const home = await temporaryDirectory(t)
  const pids = join(home, 'pids')
  await writeFile(
    join(home, 'driver.mjs'),
    `import { appendFileSync } from 'node:fs'
export default ({ pids, type }) => {
  appendFileSync(pids, process.pid + '\\n')
  if (type === 'loops') setTimeout(() => { for (;;); }, 100)
  return { deliver() {} }
}`,
  )
  const plugins = ['loops', 'waits'].map((type) => ({ type, driver: 'driver.mjs', pids }))
  await writeFile(join(home, 'hub.json'), JSON.stringify({ plugins }))
  const hub = await spawnHub(t, home, { HUB_CONFIG: join(home, 'hub.json') })
  const read = async () =>
    (await readFile(pids, 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number)
  await until(async () => (await read()).length === 2)
  await hub.stop('SIGKILL')
  await until(async () => (await read()).every((pid) => !isAlive(pid)))
  t.pass('both have ended')
})

interface Shown {
  name: string
  pending: number
  aside: number
  driver: { state: string; ends: number; lastEnd: { reason: string } | null }
}

/** A publisher at the node, and what its operator and its targets see. */
async function operate(t: Test, hub: Awaited<ReturnType<typeof spawnHub>>, took: string) {
  const ask = <Result>(command: string, args = {}) => askNode<Result>(hub.adminSocket, command, args)
  const issued = await ask<Issued>('credentials.add', {
    role: 'publisher',
    label: 'test',
    institutions: [own],
    classes: [],
  })
  const publisher = await connectPublisher(t, hub, issued, own)
  return {
    publish: (title: string, plugins: object[]) => publisher.publish(playing(station(), { title, plugins })),
    taken: async () => (await readFile(took, 'utf8')).split('\n').filter(Boolean),
    list: () => ask<Shown[]>('queues.list'),
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
