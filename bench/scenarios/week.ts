import { startWebhooks } from '../load/webhooks.ts'
import { type Ground, onGround } from '../peers/ground.ts'
import { nodeEnv } from '../peers/hub.ts'
import { counted, type Options, type Sample, type Scenario, single } from '../scenario.ts'
import { type Place, type Store, stores } from '../sessions/part.ts'
import { alternately } from '../stage.ts'
import { bytesBelow, dayFigures, hourMs, live, type Part } from '../week/days.ts'
import { busier } from '../week/events.ts'
import { startingFigures, startOn } from '../week/starting.ts'

type Say = (line: string) => void
type Env = Record<string, string>

const kinds: Record<string, { store: Store; about: string }> = {
  leveldb: { store: stores.hub, about: '**leveldb**: in the node itself.' },
  redis: { store: stores.redis, about: '**redis**: on a Redis of its own; the disk is that of Redis.' },
}

/** Sizes after the node has ended and Redis has rewritten its append-only file. */
const afterwardsFigures = { closed: 'disk afterwards, MB', closedRedis: 'memory of Redis, MB' }
const tables = [dayFigures, afterwardsFigures, startingFigures]

export const week: Scenario = {
  about:
    'A week of events, as fast as the store takes them: a node without doors whose clock is told what time it is, with ' +
    '--rate events a second of that time and then some --hours with --peak, each event about 900 bytes that cannot be ' +
    'compressed, for --livestreams. Of --webhooks on them --dead are dead all the time, on livestreams with ' +
    `${busier} times the events of the others; the others acknowledge at once. Three quarters are track events, the rest data ` +
    'and control, one in a hundred is refused. What is over is removed as in every node, at least once in 300 events. ' +
    'Afterwards `server.ts` starts on that store, beside one on an empty store. Memory is resident; in the flood it is ' +
    'mostly garbage, and what the store has read.',
  options: {
    days: [7],
    rate: [10],
    hours: [0],
    peak: [10],
    livestreams: [60],
    webhooks: [200],
    dead: [5],
    runs: [4],
  },
  parts: Object.fromEntries(Object.entries(kinds).map(([name, { about }]) => [name, about])),
  figures: { ...dayFigures, ...afterwardsFigures, ...startingFigures },
  tables: tables.map((figures) => Object.keys(figures)),
  compared: [],

  async measure(options, _asked, say, only) {
    const samples: Sample[] = []
    for (const [name, { store }] of Object.entries(kinds)) {
      if (only.length === 0 || only.includes(name)) samples.push(...(await weekOn(store, options, say)))
    }
    return samples
  },
}

async function weekOn(store: Store, options: Options, say: Say): Promise<Sample[]> {
  const samples: Sample[] = []
  const add = (name: string, figures: Record<string, number>, run = 1) => {
    say(`${store.name}: ${name}: ${JSON.stringify(figures)}`)
    samples.push({ case: name, system: store.name, run, figures })
  }
  return onGround([single(options, 'livestreams')], async (ground, stops) => {
    const arrivals = createArrivals()
    const webhooks = await startWebhooks(arrivals.arrived)
    stops.push(webhooks.close)
    const env = { ...nodeEnv(ground), HUB_PUSH_ALLOW_PRIVATE: 'true', HUB_PUSH_CA: webhooks.ca }
    const [full, empty] = [await store.open(ground, 'week'), await store.open(ground, 'empty')]
    if (!full || !empty) return []
    stops.push(full.stop, empty.stop)
    const counts = { webhooks: single(options, 'webhooks'), dead: single(options, 'dead') }
    // The last of the dead URLs refuses connections at once.
    const urls = { okUrl: webhooks.ok, deadUrl: webhooks.dead.at(-1) ?? '' }
    const about = { ...counts, ...urls, feedPath: ground.feedPath, parts: partsOf(options) }
    await live(full, { ...about, env: { ...env, HUB_DATA_DIR: ground.directory, ...full.env } }, add)
    await full.rewrite?.()
    const closedRedis = await full.memory?.()
    add('afterwards', {
      closed: (await bytesBelow(full.directory)) / 1e6,
      ...(closedRedis !== undefined && { closedRedis: closedRedis / 1e6 }),
    })
    const of = { env, ground, arrivals, ...counts, runs: single(options, 'runs') }
    for (const { name, figures, run } of await starts({ full, empty }, of)) add(name, figures, run)
    return samples
  })
}

function partsOf(options: Options): Part[] {
  const [days, rate] = [single(options, 'days'), single(options, 'rate')]
  const [hours, peak] = [single(options, 'hours'), single(options, 'peak')]
  const parts = Array.from({ length: Math.ceil(days) }, (_, day) => ({
    name: `day ${day + 1}, ${rate}/s`,
    ms: Math.min(1, days - day) * 24 * hourMs,
    rate,
  }))
  const last = { name: `${counted(hours, 'hour')}, ${peak}/s`, ms: hours * hourMs, rate: peak }
  return hours > 0 ? [...parts, last] : parts
}

/** Starts nodes on the full and the empty store. */
async function starts(
  { full, empty }: { full: Place; empty: Place },
  of: { env: Env; ground: Ground; arrivals: Arrivals; webhooks: number; dead: number; runs: number },
) {
  const livestreams = of.ground.institutions.flatMap((institution) => institution.livestreams)
  // The first livestream without a dead webhook (`subscribe` in `week/life.ts`).
  const nth = of.dead % livestreams.length
  const livestream = livestreams.toSorted((a, b) => (a.id < b.id ? -1 : 1))[nth]
  if (!livestream) throw new Error('there are no livestreams')
  const expected = Math.ceil((of.webhooks - nth) / livestreams.length)
  const places = [
    { name: 'start: an empty store', place: empty, arrival: undefined },
    { name: 'start: the week', place: full, arrival: (id: string) => of.arrivals.of(id, expected) },
  ]
  const found = await alternately(places, of.runs, async ({ name, place, arrival }, run) => {
    return { name, place, run, figures: await startOn({ ...place.env, ...of.env }, livestream, arrival) }
  })
  return found.map(({ name, place, run, figures }) => {
    const least = found.find((other) => other.place === empty && other.run === run)?.figures.ready ?? NaN
    const readyMore = place === full && { readyMore: figures.ready - least }
    return { name, run, figures: { ...figures, ...readyMore } }
  })
}

type Arrivals = ReturnType<typeof createArrivals>

/** `of` resolves when an event has arrived at as many webhooks as `missing` says. */
function createArrivals() {
  const waiting = new Map<string, { missing: number; done: () => void }>()
  return {
    arrived(playlistItemId: string): void {
      const one = waiting.get(playlistItemId)
      if (one && --one.missing === 0) one.done()
    },
    of: (playlistItemId: string, missing: number): Promise<void> =>
      new Promise((done) => {
        waiting.set(playlistItemId, { missing, done })
      }),
  }
}
