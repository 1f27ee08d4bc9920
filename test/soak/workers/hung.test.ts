import { readFile } from 'node:fs/promises'
import t from 'tap'
import { connect } from '../../clients.ts'
import { control, institutions, station } from '../../events.ts'
import { withoutRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'
import { areBack, startWorkers, workersOf, workersOn } from './start-workers.ts'

/*
 * A worker that hangs is killed, and another starts.
 */

const [own = ''] = institutions
const killed = 'a worker hangs, and is killed'

t.test('a worker that hangs is replaced, and nothing is lost', { skip: withoutRedis }, async (t) => {
  const { hub, ask, publisher, subscriber } = await startWorkers(t)
  const suspended = await startWorkers(t)
  const stays = { reconnectPeriod: 100, clean: false }
  const player = await connect(t, hub, await subscriber('radio/#'), { ...stays, clientId: 'player' })
  await player.client.subscribeAsync('radio/#', { qos: 1 })
  let cameBack = 0
  player.client.on('connect', ({ sessionPresent }) => {
    if (sessionPresent) cameBack++
  })
  const [{ node = '' } = {}] = await ask<{ node: string }[]>('clients.list')
  const hung = workersOf(hub).find((pid) => node.endsWith(`:${pid}`)) ?? 0
  const login = await publisher([own])
  let studio = await connect(t, hub, login)
  const isAtPlayer = async () =>
    (await ask<{ clientId: string; node: string }[]>('clients.list')).some(
      (client) => client.clientId === studio.client.options.clientId && client.node === node,
    )
  if (await isAtPlayer()) studio = await connect(t, hub, login)
  t.notOk(await isAtPlayer(), 'the publisher is at the other worker')

  // This machine stands still for as long as the other hub waits for its worker.
  const machine = [suspended.hub.pid, ...workersOf(suspended.hub)]
  for (const pid of machine) process.kill(pid, 'SIGSTOP')
  process.kill(hung, 'SIGSTOP')
  for (let times = 0; times < 2; times++) await ask('status')
  const total = 50
  for (let index = 0; index < total; index++) {
    const event = { ...control(station()), name: `event-${index}` }
    await studio.client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 1 })
  }
  await until(() => areBack(hub, 1))
  t.equal(hub.lines.filter(({ msg }) => msg === killed).length, 1)
  await player.received.until(({ json }) => json.name === `event-${total - 1}`)
  t.ok(cameBack > 0, 'the session was resumed')
  const names = new Set(player.received.all.map(({ json }) => json.name))
  t.same(
    Array.from({ length: total }, (_, index) => `event-${index}`).filter((name) => !names.has(name)),
    [],
  )
  t.equal(await hub.stop('SIGTERM'), 0)

  for (const pid of machine) process.kill(pid, 'SIGCONT')
  await until(async () => (await suspended.ask<{ workers?: unknown[] }>('status')).workers?.length === 2)
  t.notOk(suspended.hub.messages.includes(killed), 'no worker of a suspended machine is killed')
  t.notOk(suspended.hub.messages.includes('a worker ended, and starts again'))
})

t.test(
  'a worker that hangs while it starts is replaced; the first of a hub ends its start',
  { skip: withoutRedis },
  async (t) => {
    const { hub, redis } = await startWorkers(t)
    const home = await temporaryDirectory(t)
    const ours = await childrenOf(process.pid)
    const ended = t.rejects(
      spawnHub(t, home, workersOn(redis.url)),
      /ended with 1: the hub cannot start: a signal ended worker 1/,
    )
    process.kill(await nextChildOf(await nextChildOf(process.pid, ours)), 'SIGSTOP')

    const [first = 0] = workersOf(hub)
    const workers = await childrenOf(hub.pid)
    process.kill(first, 'SIGKILL')
    process.kill(await nextChildOf(hub.pid, workers), 'SIGSTOP')
    await until(() => areBack(hub, 1), hangMs)
    t.equal(hub.lines.filter(({ msg }) => msg === killed).length, 1)
    await ended
    t.equal(await hub.stop('SIGTERM'), 0)
  },
)

/** Longer than the hub waits for a worker that starts, milliseconds. */
const hangMs = 120_000

/**
 * The next process that this one starts, besides those known. It runs its own program already: a child that stops
 * between `fork` and `exec` stops its parent, which waits in `spawn`.
 */
async function nextChildOf(pid: number, known: readonly number[] = []): Promise<number> {
  let next: number | undefined
  await until(async () => {
    next = (await childrenOf(pid)).find((child) => !known.includes(child))
    return next !== undefined && (await environmentOf(next)) !== (await environmentOf(pid))
  })
  return next ?? 0
}

/** The environment of a process. Until `exec` it is that of its parent. */
function environmentOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}
