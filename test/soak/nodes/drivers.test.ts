import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { startRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, type Issued, temporaryDirectory } from '../../start-hub.ts'

const [own = ''] = institutions
/** Each type has a queue of its own, and the names of the nodes decide which one works it off. */
const types = ['one', 'two', 'three', 'four']

const driver = `import { appendFileSync } from 'node:fs'
export default function createDriver({ type, took }) {
  return { async deliver({ event }) { appendFileSync(took, type + ' ' + event.title + '\\n') } }
}
`

t.test('items of a driver that does not start on one node are delivered by another', async (t) => {
  const { url } = await startRedis(t)
  const took = join(await temporaryDirectory(t), 'took')
  await writeFile(took, '')
  await startNode(t, { url, took, code: 'throw new Error("a library is missing here")' })
  const good = await startNode(t, { url, took, code: driver })
  const ask = <Result>(command: string, args: object) =>
    askNode<Result>(good.adminSocket, command, { ...args })
  const login = await ask<Issued>('credentials.add', {
    role: 'publisher',
    label: 'studio',
    institutions: [own],
  })
  const publisher = await connectPublisher(t, good, login, own)
  const plugins = types.map((type) => ({ type }))
  const taken = async () => (await readFile(took, 'utf8')).trim().split('\n')
  const deliver = async (title: string) => {
    t.equal((await publisher.publish(playing(station(), { title, plugins }))).outcome, 'published')
    const isTaken = (lines: readonly string[]) => types.every((type) => lines.includes(`${type} ${title}`))
    while (!isTaken(await taken())) await delay(50)
  }
  await deliver('first')
  // A node that joins hears of it too.
  await startNode(t, { url, took, code: 'throw new Error("nor is it here")' })
  await deliver('second')
  t.same(
    (await taken()).sort(),
    types.flatMap((type) => [`${type} first`, `${type} second`]).sort(),
    'each once',
  )
})

async function startNode(t: Test, { url, took, code }: { url: string; took: string; code: string }) {
  const home = await temporaryDirectory(t)
  await writeFile(join(home, 'driver.mjs'), code)
  const plugins = types.map((type) => ({ type, driver: 'driver.mjs', took }))
  await writeFile(join(home, 'hub.json'), JSON.stringify({ plugins }))
  return spawnHub(t, home, {
    HUB_REDIS_URL: url,
    HUB_PUBLIC_URL: 'https://hub.example',
    HUB_CONFIG: join(home, 'hub.json'),
  })
}
