import { maxSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { institutions, playing, station } from '../../test/events.ts'
import { startChild, type Usage } from '../child.ts'
import { countCpu } from '../cost.ts'
import { atPace } from '../load/at-pace.ts'
import { delaysOf } from '../load/delays.ts'
import { startWebhooks, type Webhooks } from '../load/webhooks.ts'
import { type Build, startNode } from '../node.ts'
import type { commands as bareWebhooks } from '../peers/bare-webhooks-process.ts'
import { type Options, type Sample, type Scenario, single } from '../scenario.ts'
import { alternately, chosenOf } from '../stage.ts'
import { logIn, subscribeWebhook } from '../user.ts'

const livestream = station()

/** A system that sends events to the healthy webhooks. */
interface Pusher {
  name: string
  publish(event: string): Promise<unknown>
  /** Sends to dead webhooks too from now on. */
  addDead?(count: number): Promise<void>
  usage(): Promise<Usage>
  stop(): Promise<void>
}

type StartPusher = (webhooks: Webhooks, healthy: number) => Promise<Pusher>

export const push: Scenario = {
  about:
    'Webhooks of one livestream: the time from publish to the request at the healthy ones, without and beside dead ' +
    'endpoints (refused connections, errors, no answer), and how many deliveries per second there are at most. The bare ' +
    'client posts the same bodies and signed tokens over kept connections, and stores nothing: it is the limit.',
  options: { runs: [6], healthy: [90], dead: [10], events: [60], rate: [4], burst: [40] },
  figures: {
    p50: 'p50, ms',
    p99: 'p99, ms',
    ratio: 'p99 ratio',
    rate: 'webhooks/s',
    cpu: 'CPU per webhook, µs',
  },
  compared: ['rate', 'p50', 'p99', 'cpu'],
  peers: ['hub', 'bare'],

  async measure(options, asked, say) {
    const starts = chosenOf(asked, { hub: startHub(), bare: startBare }, startHub)
    const samples = await alternately(starts, single(options, 'runs'), async (start, run) => {
      const found = await once(start, options, run)
      for (const { system, case: name, figures } of found)
        say(`${system}: run ${run}, ${name}: ${JSON.stringify(figures)}`)
      return found
    })
    return samples.flat()
  },
}

async function once(start: StartPusher, options: Options, run: number): Promise<Sample[]> {
  const [healthy, dead] = [single(options, 'healthy'), single(options, 'dead')]
  const [events, rate, burst] = [single(options, 'events'), single(options, 'rate'), single(options, 'burst')]
  let arrived: (playlistItemId: string) => void = () => {}
  const webhooks = await startWebhooks((playlistItemId) => arrived(playlistItemId))
  const listen = (listener: typeof arrived) => {
    arrived = listener
  }
  const stops = [webhooks.close]
  try {
    const pusher = await start(webhooks, healthy)
    stops.push(pusher.stop)
    const paced = { events, rate, expected: healthy }
    const atOnce = { events: burst, rate: Infinity, expected: healthy }
    await measure(pusher, listen, atOnce) // warm-up
    const alone = await measure(pusher, listen, paced)
    const fastest = await measure(pusher, listen, atOnce)
    const results = {
      [`${healthy} webhooks`]: { ...alone, ratio: 1 },
      [`${burst} events at once`]: { ...fastest, rate: (burst * healthy * 1000) / fastest.ms },
    }
    if (pusher.addDead) {
      await pusher.addDead(dead)
      const beside = await measure(pusher, listen, paced)
      results[`beside ${dead} dead ones`] = { ...beside, ratio: beside.p99 / alone.p99 }
    }
    return Object.entries(results).map(([name, { ms: _, ...figures }]) => ({
      case: name,
      system: pusher.name,
      run,
      figures,
    }))
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

function startHub(build?: Build): StartPusher {
  return async (webhooks, healthy) => {
    const node = await startNode({ HUB_PUSH_ALLOW_PRIVATE: 'true', HUB_PUSH_CA: webhooks.ca }, { build })
    const publisher = await node.connect(livestream.institution.id)
    const topic = `inbox/${livestream.institution.id}`
    const publish = (event: string) => publisher.publishAsync(topic, event, { qos: 1 })
    await publish(JSON.stringify(playing(livestream, { playlistItemId: 'makes the topic' })))
    // Several institutions subscribe, because each has a limited number of webhooks of a livestream.
    const { perLivestream } = maxSubscriptions
    const tokens: string[] = []
    let added = 0
    const subscribe = async (url: string) => {
      const nth = Math.floor(added++ / perLivestream)
      tokens[nth] ??= await logIn(node, institutions[nth] ?? '')
      await subscribeWebhook(node, tokens[nth], { url, topic: livestream.id })
    }
    for (let index = 0; index < healthy; index++) await subscribe(webhooks.ok)
    return {
      name: build ? 'before' : 'hub',
      publish,
      async addDead(count) {
        const { dead } = webhooks
        for (let index = 0; index < count; index++) await subscribe(dead[index % dead.length] ?? '')
      },
      usage: node.usage,
      async stop() {
        publisher.end(true)
        await node.stop()
      },
    }
  }
}

const startBare: StartPusher = async (webhooks, healthy) => {
  const { ask, usage, stop } = await startChild<typeof bareWebhooks>('peers/bare-webhooks-process.ts')
  await ask('start', { url: webhooks.ok, ca: webhooks.ca, count: healthy })
  return { name: 'bare client', publish: (payload) => ask('push', { payload }), usage, stop }
}

/**
 * Publishes events, and waits until all `expected` webhooks have them. `p50` and `p99`: from when an event is due to its
 * arrival, milliseconds. `cpu`: for each arrival, microseconds.
 */
async function measure(
  pusher: Pusher,
  listen: (listener: (playlistItemId: string) => void) => void,
  { events, rate, expected }: { events: number; rate: number; expected: number },
) {
  const sent = new Map<string, number>()
  const times: number[] = []
  const all = new Promise<void>((resolve) => {
    listen((playlistItemId) => {
      const at = sent.get(playlistItemId)
      if (at === undefined) return
      times.push(performance.now() - at)
      if (times.length === events * expected) resolve()
    })
  })
  const cpuOf = await countCpu(pusher)
  const began = performance.now()
  await atPace({ events, rate }, (index, due) => {
    const playlistItemId = `${began} ${index}`
    sent.set(playlistItemId, due)
    return pusher.publish(JSON.stringify(playing(livestream, { playlistItemId })))
  })
  await all
  const ms = performance.now() - began
  const cpu = await cpuOf(times.length)
  return { ...delaysOf(times), cpu, ms }
}
