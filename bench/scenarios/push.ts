import type { MqttClient } from 'mqtt'
import { maxSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { percentile } from '../../telemetry/latency.ts'
import { institutions, playing, station } from '../../test/events.ts'
import { startWebhooks, type Webhooks } from '../load/webhooks.ts'
import { startNode } from '../node.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'
import { logIn, subscribeWebhook } from '../user.ts'

const livestream = station()

export const push: Scenario = {
  about:
    'Webhooks of one livestream: the time from publish to the request at the healthy ones, without and beside dead ' +
    'endpoints (refused connections, errors, no answer), and how many deliveries per second there are at most.',
  options: { runs: [3], healthy: [90], dead: [10], events: [60], rate: [4], burst: [40] },
  figures: { p50: 'p50, ms', p99: 'p99, ms', ratio: 'p99 ratio', rate: 'webhooks/s' },
  compared: [],

  async measure(options, _asked, say) {
    const samples: Sample[] = []
    for (let run = 1; run <= single(options, 'runs'); run++) {
      samples.push(...(await once(options, run)))
      say(`run ${run}`)
    }
    return samples
  },
}

async function once(options: Parameters<Scenario['measure']>[0], run: number): Promise<Sample[]> {
  const [healthy, dead] = [single(options, 'healthy'), single(options, 'dead')]
  const [events, rate, burst] = [single(options, 'events'), single(options, 'rate'), single(options, 'burst')]
  let arrived: (playlistItemId: string) => void = () => {}
  const webhooks = await startWebhooks((playlistItemId) => arrived(playlistItemId))
  const node = await startNode({
    HUB_PUSH_ALLOW_PRIVATE: 'true',
    HUB_PUSH_CA: webhooks.ca ?? '',
  })
  const listen = (listener: typeof arrived) => {
    arrived = listener
  }
  try {
    const publisher = await node.connect(livestream.institution.id)
    await publish(publisher, 'makes the topic')
    // Several institutions subscribe, because each has a limited number of webhooks of a livestream.
    const { perLivestream } = maxSubscriptions
    const subscribing = institutions.slice(0, Math.ceil((healthy + dead) / perLivestream))
    const tokens = await Promise.all(subscribing.map((institution) => logIn(node, institution)))
    let added = 0
    const subscribe = (url: string) =>
      subscribeWebhook(node, tokens[Math.floor(added++ / perLivestream)] ?? '', { url, topic: livestream.id })
    for (let index = 0; index < healthy; index++) await subscribe(webhooks.ok)
    await measure(publisher, listen, { events: 10, rate, expected: healthy }) // warm-up
    const alone = await measure(publisher, listen, { events, rate, expected: healthy })
    const fastest = await measure(publisher, listen, { events: burst, rate: Infinity, expected: healthy })
    for (let index = 0; index < dead; index++) await subscribe(deadUrl(webhooks, index))
    const beside = await measure(publisher, listen, { events, rate, expected: healthy })
    publisher.end(true)
    const sampleOf = (name: string, figures: Record<string, number>) => ({
      case: name,
      system: 'hub',
      run,
      figures,
    })
    return [
      sampleOf(`${healthy} webhooks`, { ...figuresOf(alone.times), ratio: 1 }),
      sampleOf(`beside ${dead} dead ones`, {
        ...figuresOf(beside.times),
        ratio: percentile(beside.times, 0.99) / percentile(alone.times, 0.99),
      }),
      sampleOf(`${burst} events at once`, { rate: (burst * healthy * 1000) / fastest.ms }),
    ]
  } finally {
    await node.stop()
    await webhooks.close()
  }
}

function figuresOf(times: Float64Array) {
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
}

function deadUrl({ dead }: Webhooks, index: number): string {
  return dead[index % dead.length] ?? ''
}

/**
 * Publishes events, and waits until all `expected` webhooks have them. `times`: from publish to arrival, milliseconds,
 * ascending.
 */
async function measure(
  publisher: MqttClient,
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
  const began = performance.now()
  for (let index = 0; index < events; index++) {
    const due = began + (index * 1000) / rate
    const early = due - performance.now()
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
    const id = `${began} ${index}`
    sent.set(id, performance.now())
    await publish(publisher, id)
  }
  await all
  return { times: Float64Array.from(times).sort(), ms: performance.now() - began }
}

async function publish(publisher: MqttClient, playlistItemId: string): Promise<void> {
  const event = JSON.stringify(playing(livestream, { playlistItemId }))
  await publisher.publishAsync(`inbox/${livestream.institution.id}`, event, { qos: 1 })
}
