import type { MqttClient } from 'mqtt'
import { percentile } from '../telemetry/budget.ts'
import { playing, station } from '../test/events.ts'
import { type BenchNode, startNode } from './node.ts'

const events = 5000
const payloadBytes = 4000
const inFlight = 10
const healthyReaders = 5
const frozenReaders = 10

/**
 * Does a subscriber that stopped reading delay the others? Publishes the same events twice in one run, without
 * and with frozen subscribers, and compares the time from publish to receipt at the healthy ones.
 */
export async function slowReaders(): Promise<Record<string, number>> {
  const node = await startNode({ HUB_LOGIN_FAILURES: '0' })
  try {
    const healthy = await Promise.all(Array.from({ length: healthyReaders }, () => subscribe(node)))
    const publisher = await node.connect(station().institution.id)
    await measure(publisher, healthy, 500) // warm
    const undisturbed = await measure(publisher, healthy, events)
    const before = await node.memory()
    const frozen = await Promise.all(Array.from({ length: frozenReaders }, () => subscribe(node)))
    for (const client of frozen) client.stream.pause()
    let peak = before
    const watch = setInterval(async () => {
      peak = Math.max(peak, await node.memory())
    }, 50)
    const disturbed = await measure(publisher, healthy, events)
    clearInterval(watch)
    for (const client of [...healthy, ...frozen, publisher]) client.end(true)
    return {
      'undisturbed p50, ms': percentile(undisturbed, 0.5),
      'undisturbed p99, ms': percentile(undisturbed, 0.99),
      'beside frozen readers p50, ms': percentile(disturbed, 0.5),
      'beside frozen readers p99, ms': percentile(disturbed, 0.99),
      'p99 ratio': percentile([percentile(disturbed, 0.99) / percentile(undisturbed, 0.99)], 1),
      'memory before, MB': Math.round(before / 1e6),
      'memory at most, MB': Math.round(peak / 1e6),
    }
  } finally {
    await node.stop()
  }
}

async function subscribe(node: BenchNode): Promise<MqttClient> {
  const client = await node.connect()
  await client.subscribeAsync('radio/#', { qos: 1 })
  return client
}

/** Publishes `count` events, a few at a time; ascending milliseconds from publish to each receipt. */
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
