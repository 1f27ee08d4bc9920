import type { Asked, Options, Sample, Scenario } from '../scenario.ts'
import { connected, connectedFigures } from '../sessions/connected.ts'
import { crash, crashFigures } from '../sessions/crash.ts'
import { offline, offlineFigures } from '../sessions/offline.ts'
import { type Part, type Store, type System, storeBefore, stores, systems } from '../sessions/part.ts'
import { returning, returningFigures } from '../sessions/returning.ts'

const comparisons: Record<string, { compare: ReturnType<typeof on>; about: string }> = {
  offline: {
    compare: on(systems, offline),
    about:
      '**offline**: an event for sessions on `radio/#` (QoS 1) that nobody is connected to, beside a node without any: ' +
      'CPU time with --inflight events on their way, then how long PUBACK takes at --rate events a second. Where a node ' +
      'no longer keeps up, more sessions are not tried.',
  },
  connected: {
    compare: on(systems, connected),
    about:
      '**connected**: a delivery to persistent sessions beside one to clean ones on the same node; on Redis also what a ' +
      'second node does that nobody uses.',
  },
  return: {
    compare: on(systems, returning),
    about:
      '**return**: all sessions come back at once, each to catch up with every topic and without a new SUBSCRIBE, beside ' +
      'as many clean ones that subscribe and get the retained values; memory is resident, at most.',
  },
  crash: {
    compare: on(stores, crash),
    about:
      '**crash**: a node is killed (`kill -9`) while --crashed persistent sessions are connected, and started again. All of ' +
      'them return at once, beside a healthy publisher and subscriber.',
  },
}
const tables = [offlineFigures, connectedFigures, returningFigures, crashFigures]

export const sessions: Scenario = {
  about:
    'What persistent sessions cost, on both stores, and Aedes on Redis. Every phase is bounded: --seconds for what is measured, three times as long, and at least 30 s, for what is ' +
    'awaited, --bound seconds to make sessions or to serve them. ∞ is what did not come in time. Nodes and Redis ' +
    'have half of the cores, the clients the other.',
  options: {
    runs: [4],
    offline: [0, 1000, 10_000, 100_000],
    events: [3000],
    inflight: [10],
    rate: [10],
    seconds: [10],
    connected: [300],
    returning: [3000],
    topics: [300],
    atonce: [500],
    crashed: [2500],
    warm: [6000],
    bound: [600],
  },
  parts: Object.fromEntries(Object.entries(comparisons).map(([name, { about }]) => [name, about])),
  figures: {
    ...offlineFigures,
    ...connectedFigures,
    ...returningFigures,
    ...crashFigures,
  },
  tables: tables.map((figures) => Object.keys(figures)),
  compared: [],
  peers: ['hub', 'redis', 'aedes-redis'],

  async measure(options, asked, say, only) {
    const samples: Sample[] = []
    for (const [name, { compare }] of Object.entries(comparisons)) {
      if (only.length > 0 && !only.includes(name)) continue
      samples.push(...(await compare(asked, options, say)))
    }
    return samples
  },
}

/** Measures a part on those of the systems that the user chose, by their names in `--peers`. */
function on<Of extends System>(those: Readonly<Record<string, Of>>, part: Part<Of | Store>) {
  return async ({ peers, before }: Asked, options: Options, say: (line: string) => void) => {
    const samples: Sample[] = []
    for (const [name, system] of Object.entries(those)) {
      if (peers.length > 0 && !peers.includes(name)) continue
      samples.push(...(await part(system, options, say)))
      if (name === 'hub' && before) samples.push(...(await part(storeBefore(before), options, say)))
    }
    return samples
  }
}
