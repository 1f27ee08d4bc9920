import { budgetMs } from '../../telemetry/latency.ts'
import { type AttackName, type Plan, attacks as plans } from '../attacks/attacks.ts'
import { besiege, type Outcome } from '../attacks/siege.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'

const mebibyte = 1024 * 1024
/**
 * Maximum harm of an attack. `p99`: of events, milliseconds. `push`: p99 of pushes, milliseconds. `growth`: of memory,
 * bytes.
 */
const measure = { p99: budgetMs, growth: 150 * mebibyte, push: 1_000 }
/** If the pair's process stands still for longer than this, the machine disturbed the run. Milliseconds. */
const disturbedMs = 50

type Options = Parameters<Scenario['measure']>[0]

export const attacks: Scenario = {
  about:
    'What an attack does to others: a publisher at QoS 1 and a subscriber at QoS 0 over TLS, 20 events a second, first ' +
    `alone, then beside the attack. Within the measure: p99 at most ${measure.p99} ms (reads, new livestreams and a changing feed: 150 ms, slow streams: 220 ms), memory grows by less than ` +
    `${measure.growth / mebibyte} MiB, nothing is lost, the node survives. Beside receivers that hang, lie or flood, a push to a healthy one takes ` +
    'less than a second, and open sockets stay bounded. Of several runs most must be so, and in none may anything be lost. A run in which the pair itself stood still ' +
    `for more than ${disturbedMs} ms is made again, up to --tries times: that was the machine. ` +
    'Every attack meets a fresh node on the embedded store, with the limits it has unless told otherwise. ' +
    'Attacker and pair are processes of their own on one half of the cores, the node has the other half. Memory is the ' +
    'resident memory of the node, what it kept is without garbage. --memory 1024 bounds it: with a cgroup where systemd ' +
    'makes one, else the node has the heap of such a cgroup and its resident memory is watched.',
  options: {
    runs: [3],
    tries: [3],
    alone: [3],
    seconds: [8],
    after: [2],
    connections: [0],
    addresses: [0],
    memory: [0],
  },
  parts: Object.fromEntries(Object.keys(plans).map((name) => [name, ''])),
  figures: {
    sent: 'sent, MB',
    units: 'sent, pieces',
    alone50: 'p50 alone, ms',
    alone99: 'p99 alone, ms',
    beside50: 'p50 beside, ms',
    beside99: 'p99 beside, ms',
    after99: 'p99 after, ms',
    push: 'push p99 beside, ms',
    files: 'more open files',
    growth: 'memory growth, MiB',
    kept: 'kept, MiB',
    lost: 'lost',
    survived: 'survived',
    within: 'within the measure',
  },
  compared: [],
  yesNo: ['survived', 'within'],

  async measure(options, _peers, say, only) {
    const samples: Sample[] = []
    const names = (only.length > 0 ? only : Object.keys(plans)) as AttackName[]
    for (let run = 1; run <= single(options, 'runs'); run++) {
      for (const name of names) {
        const outcome = await undisturbed(name, options, say)
        samples.push({ case: name, system: 'hub', run, figures: figuresOf(name, outcome) })
      }
    }
    return samples
  },

  outside(samples) {
    const cases = [...new Set(samples.map(({ case: name }) => name))]
    return cases.flatMap((name) => {
      const runs = samples.filter((sample) => sample.case === name).map(({ figures }) => figures)
      const within = runs.filter((figures) => figures.within === 1).length
      const isLost = runs.some(({ survived, lost }) => survived === 0 || lost !== 0)
      if (within > runs.length / 2 && !isLost) return []
      return [`${name} is outside of the measure: within in ${within} of ${runs.length} runs`]
    })
  },
}

async function undisturbed(
  name: AttackName,
  options: Options,
  say: (line: string) => void,
): Promise<Outcome> {
  const tries = single(options, 'tries')
  for (let run = 1; ; run++) {
    const outcome = await besiege(name, siegeOf(options))
    say(`${name}: ${describe(outcome)}`)
    if (outcome.ownDelay <= disturbedMs || outcome.lost > 0 || run >= tries) return outcome
    say(`${name}: the machine stood still for ${Math.round(outcome.ownDelay)} ms, once more`)
  }
}

function siegeOf(options: Options): Parameters<typeof besiege>[1] {
  const [connections, addresses] = [single(options, 'connections'), single(options, 'addresses')]
  return {
    alone: single(options, 'alone'),
    attack: single(options, 'seconds'),
    after: single(options, 'after'),
    // 0 means: take the number from the plan of the attack.
    force: { ...(connections > 0 && { connections }), ...(addresses > 0 && { addresses }) },
    memory: single(options, 'memory'),
  }
}

function figuresOf(name: AttackName, outcome: Outcome): Record<string, number> {
  const { seen, events, pushes, files, memory, survived, lost } = outcome
  return {
    sent: seen.bytes / 1e6,
    units: seen.units,
    alone50: events.alone.p50,
    alone99: events.alone.p99,
    beside50: events.beside.p50,
    beside99: events.beside.p99,
    after99: events.after.p99,
    ...(pushes && { push: pushes.beside.p99 }),
    ...(pushes && { files }),
    growth: memory.growth / mebibyte,
    kept: memory.kept / mebibyte,
    lost,
    survived: Number(survived),
    within: Number(isWithin(name, outcome)),
  }
}

function isWithin(name: AttackName, { events, pushes, files, memory, survived, lost }: Outcome): boolean {
  const { p99 = measure.p99, files: most = Infinity }: Plan = plans[name]
  const isFast = events.beside.p99 <= p99 && (!pushes || pushes.beside.p99 < measure.push)
  return isFast && files <= most && memory.growth < measure.growth && survived && lost === 0
}

function describe({ seen, events, memory, ownDelay, bound, counters }: Outcome): string {
  const refused = Object.entries(counters).filter(([name]) => /refused|cut|denied/.test(name))
  return JSON.stringify({
    ...seen,
    p99: [events.alone.p99, events.beside.p99],
    highestMiB: Math.round(memory.highest / mebibyte),
    pairsOwnDelayMs: Math.round(ownDelay),
    ...(bound && { memoryBoundBy: bound }),
    counters: Object.fromEntries(refused),
  })
}
