import { join } from 'node:path'
import { maxSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import { playing } from '../../test/events.ts'
import { countCpu } from '../cost.ts'
import { type BenchNode, type Build, startNode } from '../node.ts'
import { type Ground, onGround } from '../peers/ground.ts'
import { nodeEnv } from '../peers/hub.ts'
import { counted, type Sample, type Scenario, single } from '../scenario.ts'
import { alternately } from '../stage.ts'
import { logIn, subscribeWebhook } from '../user.ts'

/** A hub with paused webhooks on one livestream, or with none. */
interface Paused {
  system: string
  webhooks: number
  /** Publishes this many events of the livestream one after the other. Resolves with the CPU of the node for each, µs. */
  cpuOf(events: number): Promise<number>
  /** What the store has more for each event, bytes of keys and values. */
  bytes: number
  stop(): Promise<void>
}

/** The most that an event may cost, in times of one without webhooks (deliveries.md, "Numbers"). */
const most = { cpuRatio: 4, bytesRatio: 10 }
/** Events of a livestream without webhooks, by which a node compiles its code. */
const warmUpEvents = 3_000

export const paused: Scenario = {
  about:
    'What an event costs that waits for many paused webhooks of several institutions: CPU of the node, and keys and values ' +
    'in its store, beside those of an event without webhooks. Events come one after the other.',
  options: { runs: [6], webhooks: [1_000], events: [100] },
  figures: {
    cpu: 'CPU of an event, µs',
    cpuRatio: 'CPU ÷ that with none',
    bytes: 'bytes of an event',
    bytesRatio: 'bytes ÷ those with none',
  },
  compared: [],
  peers: ['hub'],

  async measure(options, { before }, say) {
    const [webhooks, events] = [single(options, 'webhooks'), single(options, 'events')]
    const institutions = Math.ceil(webhooks / maxSubscriptions.perLivestream)
    // Each institution has a livestream. The webhooks are those of the first one, the second warms nodes up.
    const places = Math.max(2, institutions)
    return onGround([places, [], places], async (ground, stops) => {
      const hubs: Paused[] = []
      for (const build of before ? [undefined, before] : [undefined]) {
        for (const count of [0, webhooks]) {
          say(`${build ? 'before' : 'hub'}: ${counted(count, 'paused webhook')}`)
          const hub = await startPaused(ground, { build, webhooks: count, events })
          stops.push(hub.stop)
          hubs.push(hub)
        }
      }
      const found = await alternately(hubs, single(options, 'runs'), async (hub, run) => {
        const cpu = await hub.cpuOf(events)
        say(`${hub.system}, ${hub.webhooks}: run ${run}: ${cpu.toFixed(0)} µs, ${hub.bytes.toFixed(0)} bytes`)
        return { hub, run, cpu }
      })
      return found.map(({ hub, run, cpu }): Sample => {
        const none = found.find(
          (other) => other.hub.system === hub.system && other.hub.webhooks === 0 && other.run === run,
        )
        const ratios = hub.webhooks > 0 &&
          none && { cpuRatio: cpu / none.cpu, bytesRatio: hub.bytes / none.hub.bytes }
        return {
          case: counted(hub.webhooks, 'paused webhook'),
          system: hub.system,
          run,
          figures: { cpu, bytes: hub.bytes, ...ratios },
        }
      })
    })
  },

  outside: (samples) =>
    Object.entries(most).flatMap(([figure, limit]) => {
      const found = samples.flatMap(({ system, figures }) => (system === 'hub' && figures[figure]) || [])
      const median = found.sort((a, b) => a - b)[Math.floor(found.length / 2)] ?? 0
      return median > limit ? [`${figure} is ${median.toFixed(1)}, at most ${limit} is wanted`] : []
    }),
}

async function startPaused(
  ground: Ground,
  { build, webhooks, events }: { build: Build | undefined; webhooks: number; events: number },
): Promise<Paused> {
  const system = build ? 'before' : 'hub'
  const dataDir = join(ground.directory, `${system}-${webhooks}`)
  const start = () => startNode({ ...nodeEnv(ground), HUB_DATA_DIR: dataDir }, { build })
  const first = await start()
  await publish(first, ground, { livestream: 0, events: 1 })
  await pauseWebhooks(first, ground, webhooks)
  await first.stop()
  const bytesBefore = await bytesIn(dataDir)
  const second = await start()
  await publish(second, ground, { livestream: 0, events })
  await second.stop()
  const bytes = ((await bytesIn(dataDir)) - bytesBefore) / events
  const node = await start()
  await publish(node, ground, { livestream: 1, events: warmUpEvents })
  return {
    system,
    webhooks,
    bytes,
    async cpuOf(count) {
      const cpuOf = await countCpu(node)
      await publish(node, ground, { livestream: 0, events: count })
      return cpuOf(count)
    },
    stop: node.stop,
  }
}

/** Publishes events of one livestream, each when the one before is acknowledged. */
async function publish(
  node: BenchNode,
  { institutions }: Ground,
  { livestream: nth, events }: { livestream: number; events: number },
): Promise<void> {
  const { id = '', livestreams: [livestream] = [] } = institutions[nth] ?? {}
  if (!livestream) throw new Error('the ground has too few livestreams')
  const publisher = await node.connect(id)
  for (let count = 0; count < events; count++) {
    const event = JSON.stringify(playing(livestream, { playlistItemId: `item ${count}` }))
    await publisher.publishAsync(`inbox/${id}`, event, { qos: 1 })
  }
  await publisher.endAsync()
}

async function pauseWebhooks(node: BenchNode, { institutions }: Ground, count: number): Promise<void> {
  const topic = institutions[0]?.livestreams[0]?.id ?? ''
  for (let left = count, nth = 0; left > 0; left -= maxSubscriptions.perLivestream, nth++) {
    const token = await logIn(node, institutions[nth]?.id ?? '')
    for (let made = 0; made < Math.min(left, maxSubscriptions.perLivestream); made++)
      await subscribeWebhook(node, token, { url: 'https://receiver.example/', topic })
  }
  for (const { name } of await node.ask<{ name: string }[]>('subscriptions.list')) {
    await node.ask('subscriptions.pause', { name })
  }
}

/** The bytes of all keys and values of a node that is stopped. */
async function bytesIn(dataDir: string): Promise<number> {
  const store = await openEmbeddedStore(join(dataDir, 'store'))
  let bytes = 0
  for await (const records of store.dump()) {
    for (const { key, value } of records) bytes += key.length + (value?.length ?? 0)
  }
  await store.close()
  return bytes
}
