import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { playing } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import { atPace } from '../load/at-pace.ts'
import { delaysOf } from '../load/delays.ts'
import { startReceiver } from '../load/receiver.ts'
import { startNode } from '../node.ts'
import { type Ground, onGround } from '../peers/ground.ts'
import { type Options, type Sample, type Scenario, single } from '../scenario.ts'
import { alternately } from '../stage.ts'

const ways = ['all answer at once', 'one livestream is answered late'] as const
type Way = (typeof ways)[number]

/** Largest p99 of the other livestreams, milliseconds (deliveries.md, "Numbers"). */
const most = 1_000
/** Longest wait for the last deliveries, milliseconds. */
const patienceMs = 60_000

export const targets: Scenario = {
  about:
    'Plugin targets that get every event, while all of them answer the events of one livestream after --late seconds: from when ' +
    `an event is due to its arrival, of all other livestreams. Their p99 is to stay below ${most} ms, and nothing may be missing. ` +
    'Events of all livestreams come in turn, at a steady pace.',
  options: { runs: [3], targets: [20], livestreams: [60], late: [19], events: [300], rate: [10] },
  figures: { p50: 'p50, ms', p99: 'p99, ms', max: 'longest, ms', lost: 'lost', held: 'answered late' },
  compared: [],

  async measure(options, _asked, say) {
    return alternately(ways, single(options, 'runs'), async (way, run) => {
      const figures = await measureOnce(way, options)
      say(`${way}: run ${run}: ${JSON.stringify(figures)}`)
      return { case: way, system: 'hub', run, figures }
    })
  },

  outside(samples: readonly Sample[]) {
    return samples
      .filter(({ figures: { p99 = Infinity, lost } }) => p99 >= most || lost !== 0)
      .map(({ case: way, run, figures }) => `${way}, run ${run}: p99 ${figures.p99} ms, ${figures.lost} lost`)
  },
}

/** One run with a fresh node. */
async function measureOnce(way: Way, options: Options): Promise<Record<string, number>> {
  const [count, late] = [single(options, 'targets'), single(options, 'late')]
  const [events, rate] = [single(options, 'events'), single(options, 'rate')]
  return onGround([single(options, 'livestreams')], async (ground, stops) => {
    const livestreams = ground.institutions.flatMap(({ livestreams }) => livestreams)
    const [first] = livestreams
    const isHeld = (livestream: Livestream) => livestream === first && way !== 'all answer at once'
    const held = new Set<string>()
    const sentAt = new Map<string, number>()
    const times: number[] = []
    let lateAnswers = 0
    const receiver = await startReceiver(ground.certificate, async (body, response) => {
      const id = String(JSON.parse(body).event.playlistItemId)
      if (held.has(id)) {
        lateAnswers++
        await delay(late * 1000, undefined, { ref: false })
      } else times.push(performance.now() - (sentAt.get(id) ?? NaN))
      response.writeHead(204).end()
    })
    stops.push(receiver.close)
    const node = await startHub(ground, count, receiver.port)
    stops.push(node.stop)
    const clients = new Map(
      await Promise.all(ground.institutions.map(async ({ id }) => [id, await node.connect(id)] as const)),
    )
    stops.push(async () => [...clients.values()].map((client) => client.end(true)))
    const publish = async (livestream: Livestream, id: string, due: number) => {
      if (isHeld(livestream)) held.add(id)
      const payload = JSON.stringify(playing(livestream, { playlistItemId: id, title: id }))
      const { institution } = livestream
      sentAt.set(id, due)
      await clients.get(institution.id)?.publishAsync(`inbox/${institution.id}`, payload, { qos: 1 })
    }
    // Topics, code that is compiled, and kept connections.
    for (const [index, livestream] of livestreams.entries()) await publish(livestream, `warm-up ${index}`, 0)
    await arrived(() => times.length + lateAnswers >= count * livestreams.length)
    times.length = 0
    let expected = 0
    await atPace({ events, rate }, (index, due) => {
      const livestream = livestreams[index % livestreams.length]
      if (!livestream) throw new Error('no livestream')
      if (!isHeld(livestream)) expected += count
      return publish(livestream, `event ${index}`, due)
    })
    await arrived(() => times.length >= expected)
    return {
      ...delaysOf(times),
      lost: expected - times.length,
      held: lateAnswers,
    }
  })
}

/** Plugin targets with a path each at one server. To the hub, each target is an endpoint of its own. */
async function startHub({ certificate, feedPath, directory }: Ground, count: number, port: number) {
  const plugins = Array.from({ length: count }, (_, index) => ({
    type: `target-${index}`,
    autoEnable: true,
    url: `https://localhost:${port}/${index}`,
  }))
  const config = join(directory, 'hub.json')
  await writeFile(config, JSON.stringify({ plugins }))
  const { cert, key, ca } = certificate
  return startNode({
    HUB_CONFIG: config,
    HUB_FEED: feedPath,
    HUB_TLS_CERT: cert,
    HUB_TLS_KEY: key,
    HUB_TLS_CA: ca,
    HUB_PUSH_CA: ca,
  })
}

async function arrived(isDone: () => boolean): Promise<void> {
  const end = performance.now() + patienceMs
  while (!isDone() && performance.now() < end) await delay(20)
}
