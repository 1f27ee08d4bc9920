import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { connectPublisher } from '../../clients.ts'
import { playing } from '../../events.ts'
import { type FleetNode, startFleet } from '../../nodes/fleet.ts'
import { first, type ShownLane, second, startTitleServer } from '../../output-receiver.ts'
import { withoutRedis } from '../../redis-server.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { entries, openRedis } from '../../store/open-redis.ts'
import { until } from '../../until.ts'

t.test(
  'one of several nodes delivers a livestream of an output; another one goes on when it is killed',
  { skip: withoutRedis },
  async (t) => {
    const server = await startTitleServer(t)
    const config = join(await temporaryDirectory(t), 'hub.json')
    const livestreams = { [first.id]: 'first', [second.id]: 'second' }
    const url = `http://127.0.0.1:${server.port}/{name}?t={title}`
    writeFileSync(
      config,
      JSON.stringify({ outputs: [{ name: 'web', driver: 'url-template', url, livestreams }] }),
    )
    const { nodes } = await startFleet(t, 3, { env: { HUB_CONFIG: config } })
    const { institution } = first
    let door = nodes[0] as FleetNode
    let login = await door.publisher([institution.id])
    await until(async () =>
      (await Promise.all(nodes.map((node) => node.ask<unknown[]>('credentials.list')))).every(
        ({ length }) => length === 1,
      ),
    )
    const play = async (title: string) => {
      const { publish } = await connectPublisher(t, door, login, institution.id)
      await publish(playing(first, { title, artist: null }))
      await until(() => server.texts('first').at(-1) === title)
    }
    for (const title of ['One', 'Two', 'Three']) await play(title)
    t.strictSame(server.texts('first'), ['One', 'Two', 'Three'], 'each once')

    const owner = await ownerOf(nodes)
    for (const node of nodes) {
      // The title is at the server before the node has its answer.
      await until(async () => (await laneOf(node))?.acknowledged === 3)
      t.match(await laneOf(node), { state: 'shown', title: 'Three' })
      const log = await node.ask<{ title: string }[]>('outputs.log', { name: 'web', livestream: first.id })
      t.strictSame(
        log.map(({ title }) => title),
        ['Three', 'Two', 'One'],
        'each node has the log',
      )
    }
    const tests = await Promise.all(
      nodes.map((node) => node.ask<object>('outputs.test', { name: 'web', livestream: second.id })),
    )
    for (const tested of tests)
      t.match(tested, { delivered: true, status: 200 }, 'each node can be asked for a test')
    t.equal(server.texts('second').length, nodes.length)
    await owner.kill()
    const left = nodes.filter((node) => node !== owner)
    door = left[0] as FleetNode
    login = await door.publisher([institution.id])
    await play('Four')
    t.equal(server.texts('first').filter((text) => text === 'Four').length, 1)
    t.ok(
      server
        .texts('first')
        .slice(3)
        .every((text) => text === 'Three' || text === 'Four'),
    )
    t.not(await ownerOf(left), owner)
  },
)

t.test(
  'a node whose configuration has no outputs leaves them to one that has',
  { skip: withoutRedis },
  async (t) => {
    const server = await startTitleServer(t)
    const config = join(await temporaryDirectory(t), 'hub.json')
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const outputs = names.map((name) => ({
      name,
      driver: 'url-template',
      url: `http://127.0.0.1:${server.port}/{name}?t={title}`,
      livestreams: { [first.id]: name },
    }))
    writeFileSync(config, JSON.stringify({ outputs }))
    const { a, b, redis } = await startFleet(t, 2, {
      envOf: (index) => (index === 0 ? { HUB_CONFIG: config } : {}),
    })
    const { institution } = first
    const login = await a.publisher([institution.id])
    await b.knows(1)
    const { publish } = await connectPublisher(t, b, login, institution.id)
    await publish(playing(first, { title: 'One', artist: null }))
    await until(() => names.every((name) => server.texts(name).length > 0))
    t.equal(server.came.length, names.length)
    const store = await openRedis(t, redis.url)
    const leases = async () => (await entries(store, 'work-lease/')).size
    t.equal(await leases(), names.length)
    await a.kill()
    await until(async () => (await leases()) === 0)
  },
)

async function laneOf(node: FleetNode): Promise<ShownLane | undefined> {
  return (await node.ask<ShownLane[]>('outputs.list')).find(({ there }) => there === 'first')
}

/** The node that delivers: its own log has the attempts. */
async function ownerOf(nodes: readonly FleetNode[]): Promise<FleetNode> {
  for (const node of nodes) {
    const log = await node.ask<unknown[]>('outputs.log', { name: 'web', livestream: first.id })
    if (log.length > 0) return node
  }
  throw new Error('no node delivers')
}
