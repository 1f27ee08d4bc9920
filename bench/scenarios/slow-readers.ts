import type { MqttClient } from 'mqtt'
import { percentile } from '../../telemetry/latency.ts'
import { playing, station } from '../../test/events.ts'
import { type BenchNode, startNode } from '../node.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'

const events = 5000
const payloadBytes = 4000
const inFlight = 10
const healthyReaders = 5
const frozenReaders = 10

export const slowReaders: Scenario = {
  about:
    'Whether subscribers that stopped reading delay the others: the same events without and beside frozen ones, ' +
    'from publish to receipt at the healthy ones.',
  options: { runs: [1] },
  figures: { p50: 'p50, ms', p99: 'p99, ms', ratio: 'p99 ratio', memory: 'memory at most, MB' },
  compared: [],

  async measure(options, _asked, say) {
    const samples: Sample[] = []
    for (let run = 1; run <= single(options, 'runs'); run++) {
      samples.push(...(await once(run)))
      say(`run ${run}`)
    }
    return samples
  },
}

/** Measures without frozen readers (undisturbed), then beside them (disturbed). */
async function once(run: number): Promise<Sample[]> {
  const node = await startNode({ HUB_LOGIN_FAILURES: '0' })
  try {
    const healthy = await Promise.all(Array.from({ length: healthyReaders }, () => subscribe(node)))
    const publisher = await node.connect(station().institution.id)
    await measure(publisher, healthy, 500) // warm-up
    const undisturbed = await measure(publisher, healthy, events)
    const before = (await node.usage()).bytes
    const frozen = await Promise.all(Array.from({ length: frozenReaders }, () => subscribe(node)))
    for (const client of frozen) client.stream.pause()
    let peak = before
    const watch = setInterval(async () => {
      peak = Math.max(peak, (await node.usage()).bytes)
    }, 50)
    const disturbed = await measure(publisher, healthy, events)
    clearInterval(watch)
    for (const client of [...healthy, ...frozen, publisher]) client.end(true)
    const sampleOf = (name: string, times: Float64Array, bytes: number) => ({
      case: name,
      system: 'hub',
      run,
      figures: {
        p50: percentile(times, 0.5),
        p99: percentile(times, 0.99),
        ratio: percentile(times, 0.99) / percentile(undisturbed, 0.99),
        memory: bytes / 1e6,
      },
    })
    return [
      sampleOf('undisturbed', undisturbed, before),
      sampleOf(`beside ${frozenReaders} frozen readers`, disturbed, peak),
    ]
  } finally {
    await node.stop()
  }
}

async function subscribe(node: BenchNode): Promise<MqttClient> {
  const client = await node.connect()
  await client.subscribeAsync('radio/#', { qos: 1 })
  return client
}

/** Publishes `count` events. Returns the milliseconds from publish to each receipt, ascending. */
async function measure(publisher: MqttClient, readers: MqttClient[], count: number): Promise<Float64Array> {
  const livestream = station()
  const topic = `inbox/${livestream.institution.id}`
  const sent = new Map<string, number>()
  const times: number[] = []
  const all = Promise.all(
    readers.map(
      (reader) =>
        new Promise<void>((resolve) => {
          let received = 0
          const onMessage = (_topic: string, payload: Buffer) => {
            const at = sent.get(JSON.parse(payload.toString()).playlistItemId)
            if (at === undefined) return
            times.push(performance.now() - at)
            if (++received < count) return
            reader.off('message', onMessage)
            resolve()
          }
          reader.on('message', onMessage)
        }),
    ),
  )
  const run = `${performance.now()}`
  let next = 0
  const publishSome = async () => {
    while (next < count) {
      const playlistItemId = `${run}-${next++}`
      const event = playing(livestream, { playlistItemId, title: 'x'.repeat(payloadBytes - 500) })
      sent.set(playlistItemId, performance.now())
      await publisher.publishAsync(topic, JSON.stringify(event), { qos: 1 })
    }
  }
  await Promise.all(Array.from({ length: inFlight }, publishSome))
  await all
  return Float64Array.from(times).sort()
}
