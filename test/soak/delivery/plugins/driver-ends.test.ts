import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadDriver } from '../../../../delivery/plugins/driver.ts'
import { openApi } from '../../../bridge-https/api.ts'
import { connectPublisher } from '../../../clients.ts'
import { institutions, playing, station } from '../../../events.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

/* Whatever an operator's driver does, each attempt ends, and the hub can stop. */

const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))

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
  { timeout: 120_000 },
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
