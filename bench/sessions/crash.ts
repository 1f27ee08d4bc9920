import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../test/free-port.ts'
import { startChild } from '../child.ts'
import { keepApart } from '../cores.ts'
import type { commands as crowdCommands } from '../load/crowd.ts'
import type { Login } from '../load/packets.ts'
import type { commands as pairCommands } from '../load/pair.ts'
import type { commands as publisherCommands } from '../load/publishers.ts'
import { startNode } from '../node.ts'
import { onGround } from '../peers/ground.ts'
import { nodeEnv } from '../peers/hub.ts'
import { counted, type Options, type Sample, single } from '../scenario.ts'
import { type Part, roomFor, type Store } from './part.ts'

export const crashFigures = {
  back: 'all back after, s',
  backCpu: 'CPU per return, ms',
  pairAlone: 'p99 of the pair alone, ms',
  pairBeside50: 'p50 of the pair while they return, ms',
  pairBeside: 'p99 of the pair while they return, ms',
  pairLost: 'lost by the pair',
}

/** Events a second in the seconds before the crash. Those of the last second go out again. */
const rate = 20
const seconds = 3

/**
 * Kills a node with connected persistent sessions, and starts it again. Then all sessions return at once, while a
 * healthy pair uses the node.
 */
export const crash: Part<Store> = async (store, options, say) => {
  const count = single(options, 'crashed')
  const samples: Sample[] = []
  for (let run = 1; run <= single(options, 'runs'); run++) {
    const figures = await once(store, count, options)
    if (!figures) return []
    say(`${store.name}: run ${run}: ${JSON.stringify(figures)}`)
    const name = `${counted(count, 'persistent session')} return after kill -9`
    samples.push({ case: name, system: store.name, run, figures })
  }
  return samples
}

async function once(store: Store, count: number, options: Options) {
  return onGround([], async (ground, stops) => {
    const place = await store.open(ground, 'crashed')
    if (!place) return undefined
    stops.push(place.stop)
    const [healthy, busy] = ground.institutions
    const [livestream] = healthy?.livestreams ?? []
    const [other] = busy?.livestreams ?? []
    if (!healthy || !busy || !livestream || !other) throw new Error('the feed has no two institutions')
    const port = await freePort()
    const env = { ...place.env, ...nodeEnv(ground), ...roomFor(count), HUB_MQTT_PORT: String(port) }
    const address = { port, ca: ground.ca }
    const crowd = await startChild<typeof crowdCommands>('load/crowd.ts')
    const publishers = await startChild<typeof publisherCommands>('load/publishers.ts')
    const pair = await startChild<typeof pairCommands>('load/pair.ts')
    stops.push(crowd.stop, publishers.stop, pair.stop)

    const first = await startNode(env, { build: store.build })
    stops.push(first.stop)
    await keepApart([first.pid], [crowd.pid, publishers.pid, pair.pid])
    const add = (fields: object) => first.ask<Login>('credentials.add', { label: 'bench', ...fields })
    const subscriber = await add({ role: 'subscriber', filters: ['radio/#'] })
    const publisherOf = (institution: string) => add({ role: 'publisher', institutions: [institution] })
    const logins = { healthy: await publisherOf(healthy.id), busy: await publisherOf(busy.id) }
    const filter = `radio/${other.id}/#`
    await crowd.ask('join', { address, count, login: subscriber, filter, qos: 1, clean: false })
    await publishers.ask('join', {
      address,
      count: 1,
      logins: [{ login: logins.busy, livestreams: [other] }],
    })
    await publishers.ask('pace', { count: rate * seconds, intervalMs: 1000 / rate })
    process.kill(first.pid, 'SIGKILL')
    await crowd.ask('leave', {})

    const node = await startNode(env, { build: store.build })
    stops.push(node.stop)
    await keepApart([node.pid], [])
    await pair.ask('start', { address, publisher: logins.healthy, subscriber, livestream })
    await delay(2_000)
    await pair.ask('begin', { name: 'alone' })
    await delay(single(options, 'seconds') * 1000)
    const before = await node.usage()
    await pair.ask('begin', { name: 'beside' })
    const { ms } = await crowd.ask('comeBack', {
      resume: false,
      atOnce: count,
      subscribes: false,
    })
    await pair.ask('begin', { name: 'after' })
    const after = await node.usage()
    const { events } = await pair.ask('finish', { pushed: false })
    return {
      back: ms / 1000,
      backCpu: (after.cpuMs - before.cpuMs) / count,
      pairAlone: events.alone.p99,
      pairBeside50: events.beside.p50,
      pairBeside: events.beside.p99,
      pairLost: Object.values(events).reduce((sum, { sent, received }) => sum + sent - received, 0),
    }
  })
}
