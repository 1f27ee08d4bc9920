import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { loadDriver, type PluginDriver } from '../../../../delivery/plugins/driver.ts'
import { createPlugins } from '../../../../delivery/plugins/plugins.ts'
import { openApi } from '../../../bridge-https/api.ts'
import { connectPublisher } from '../../../clients.ts'
import { institutions, playing, station } from '../../../events.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

/* Whatever an operator's driver does, each attempt ends, and the hub can stop. */

const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))

const item = {
  sequence: 1,
  messageId: '17',
  details: { plugin: { type: 'x' }, institutionId: 'i' },
  position: 1,
  enqueuedAt: 1,
  seen: 0,
  tries: 2,
  refusals: 0,
  attempts: [],
}

/** A driver that somebody else wrote: its functions may return anything. */
interface Foreign {
  deliver(...given: Parameters<PluginDriver['deliver']>): unknown
  close?(): unknown
}

async function open(foreign: Foreign, deadlineMs = 5_000) {
  const lines: string[] = []
  const plugins = createPlugins({
    targets: [{ type: 'x' }],
    deadlineMs,
    driverOf: () => foreign as PluginDriver,
    log: pino({ level: 'debug' }, { write: (line: string) => lines.push(line) }),
  })
  const stopping = new AbortController()
  return {
    lines,
    plugins,
    stopping,
    async deliver() {
      const outcome = plugins.targetOf('plugins.x')?.deliver(item, Buffer.from('{"a":1}'), stopping.signal)
      if (!outcome) throw new Error('no target')
      return outcome
    },
  }
}

const failed = (reason: string) => ({ result: 'failed', status: null, reason })

t.test('a driver that never answers is told to stop at the deadline, and not waited for', async (t) => {
  const signals: AbortSignal[] = []
  const { deliver } = await open(
    { deliver: (_item, { signal }) => new Promise(() => signals.push(signal)) },
    100,
  )
  t.same(await deliver(), failed('no answer within 0.1 s'))
  t.ok(signals[0]?.aborted)
})

t.test('what it says after the deadline is not heard', async (t) => {
  let reject = (_error: Error) => {}
  const never = new Promise<never>((_, fail) => {
    reject = fail
  })
  const { deliver } = await open({ deliver: () => never }, 50)
  t.same(await deliver(), failed('no answer within 0.05 s'))
  reject(new Error('too late'))
  await new Promise((resolve) => setImmediate(resolve))
  t.same(unhandled, [])
})

t.test('a stop ends it at once', async (t) => {
  const { deliver, stopping } = await open({ deliver: () => new Promise(() => {}) })
  const hanging = deliver()
  stopping.abort()
  t.same(await hanging, failed('the hub is stopping'))
  t.same(await deliver(), failed('the hub is stopping'), 'nor does it begin')
})

t.test('a try leaves no timer and no listener behind', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  for (const deliver of [
    () => undefined,
    () => {
      throw new Error('at once')
    },
    () => Promise.reject(new Error('later')),
  ]) {
    const one = await open({ deliver })
    const before = timers()
    for (let count = 0; count < 50; count++) await one.deliver()
    t.equal(timers(), before)
  }
})

t.test('closing waits for no driver for long, whatever it does', async (t) => {
  const table: [what: string, close: () => unknown, isNoted: boolean][] = [
    ['closes', () => undefined, false],
    [
      'throws',
      () => {
        throw new Error('at once')
      },
      true,
    ],
    ['rejects', () => Promise.reject(new Error('later')), true],
    ['never ends', () => new Promise(() => {}), true],
  ]
  for (const [what, close, isNoted] of table) {
    const { plugins, lines } = await open({ deliver: () => undefined, close })
    let isLate = false
    // After a pause of the machine, timers still go off in their order.
    const limit = setTimeout(() => {
      isLate = true
    }, 3_000)
    await plugins.close()
    clearTimeout(limit)
    t.notOk(isLate, what)
    t.equal(
      lines.some((line) => line.includes('plugin driver not closed')),
      isNoted,
      what,
    )
  }
})

t.test('a file that is no driver is refused with its name', async (t) => {
  const home = await temporaryDirectory(t)
  const write = async (name: string, text: string) => {
    await writeFile(join(home, name), text)
    return join(home, name)
  }
  await t.rejects(loadDriver(join(home, 'none.mjs')), { message: /none\.mjs cannot be loaded/ })
  await t.rejects(loadDriver(await write('broken.mjs', 'export default {')), {
    message: /broken\.mjs cannot be loaded/,
  })
  await t.rejects(loadDriver(await write('other.mjs', 'export const create = 1')), {
    message: /no default export/,
  })
  t.type(await loadDriver(await write('fine.mjs', 'export default () => ({ deliver() {} })')), 'function')
})

/** Starts a hub with a plugin target whose driver is a file with this code. */
async function startWith(t: Test, driver: string) {
  const home = await temporaryDirectory(t)
  await writeFile(join(home, 'driver.mjs'), driver)
  const plugins = [{ type: 'own', autoEnable: true, driver: 'driver.mjs' }]
  await writeFile(join(home, 'hub.json'), JSON.stringify({ plugins }))
  const hub = await startTestHub(t, { HUB_CONFIG: join(home, 'hub.json') }, home)
  const [own = ''] = institutions
  const { publish } = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const queue = async () => (await hub.ask<{ name: string }[]>('queues.list'))[0]
  return { hub, queue, publish: () => publish(playing(station())) }
}

t.test(
  'a hub stops within 10 s whatever its drivers do, and still owes the item',
  { timeout: 60_000 },
  async (t) => {
    const { hub, queue, publish } = await startWith(
      t,
      'export default () => ({ deliver: () => new Promise(() => {}), close: () => new Promise(() => {}) })',
    )
    await publish()
    await hub.until(async () => Object(await queue()).state === 'delivering')
    const began = performance.now()
    await hub.close()
    t.ok(performance.now() - began < 10_000)
    const again = await startTestHub(t, {}, hub.home)
    t.match(await again.ask('queues.list'), [{ name: 'plugins.own', pending: 1, state: 'no target' }])
    const { text } = await (await openApi(t, again)).call('GET', '/metrics')
    t.match(text, /^hub_work_pending 1$/m)
    t.match(text, /^hub_work_oldest_seconds 0$/m, 'but it is not late')
  },
)

t.test('a driver that fails does not stop the hub', async (t) => {
  const { hub, queue, publish } = await startWith(
    t,
    "export default () => ({ deliver() { throw new Error('broken') }, close() { throw new Error('broken') } })",
  )
  await publish()
  await hub.until(async () => Object(await queue()).state === 'retrying')
  t.match(await queue(), { pending: 1, lastReason: 'broken' })
  await t.resolves(hub.close())
})

t.test('nothing was rejected that nobody handles', async (t) => {
  t.same(unhandled, [])
})
