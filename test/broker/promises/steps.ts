import fc from 'fast-check'
import type { Bounds } from './promises.ts'

export const filters = ['#', 'latest/+', 'latest/1', 'every/#', 'every/1', '+/1', '+/2'] as const
export const topics = ['latest/1', 'latest/2', 'every/1', 'every/2'] as const

/** Every step is possible in every situation, perhaps without an effect. */
export type Step =
  | { act: 'publish'; node: number; drafts: Draft[]; waits: boolean }
  | { act: 'subscribe'; who: number; granted: [string, 0 | 1 | 2][] }
  | { act: 'unsubscribe'; who: number; filter: string }
  /** `isClean`: with DISCONNECT. `rests`: waits until the end of the connection is stored. */
  | { act: 'leave'; who: number; isClean: boolean; rests: boolean }
  /** A take-over if the session is connected. `holds`: the client holds its acknowledgements back. */
  | { act: 'return'; who: number; node: number; holds: boolean }
  | { act: 'hold'; who: number }
  | { act: 'acknowledge'; who: number; which: 'all' | 'first half' | 'last half' }
  /** A clean CONNECT discards the session. */
  | { act: 'end'; who: number; node: number }
  /** The crash comes after this number of turns of the event loop. */
  | { act: 'crash'; node: number; turns: number }
  | { act: 'pass'; minutes: number }
  /** `waits`: the next step comes after the trimming, otherwise at once. */
  | { act: 'trim'; times: number; waits: boolean }
  /** A pause that is long enough for a node to store all acknowledgements. */
  | { act: 'pause' }

export interface Draft {
  topic: (typeof topics)[number]
  /** Minutes: the age of the event, and its remaining validity. */
  age: number
  lasts: number | undefined
  qos: 1 | 2
}

/** The steps to play, with the numbers of nodes and sessions, and their limits. */
export interface Sequence {
  nodes: number
  sessions: number
  bounds: Bounds
  steps: Step[]
}

const who = fc.nat(1)
const node = fc.nat(1)
const qos = fc.constantFrom(1, 1, 2, 0) as fc.Arbitrary<0 | 1 | 2>
const draft: fc.Arbitrary<Draft> = fc.record({
  topic: fc.constantFrom(...topics),
  age: fc.nat(5),
  lasts: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined, freq: 3 }),
  qos: fc.constantFrom(1, 1, 2),
})
const filter = fc.constantFrom(...filters)

function step<Act extends Step['act']>(act: Act, fields: object): fc.Arbitrary<Step> {
  return fc.record({ act: fc.constant(act), ...fields }) as unknown as fc.Arbitrary<Step>
}

const publish = step('publish', {
  node,
  drafts: fc.array(draft, { minLength: 1, maxLength: 4 }),
  waits: fc.boolean(),
})
const subscribe = step('subscribe', {
  who,
  granted: fc.array(fc.tuple(filter, qos), { minLength: 1, maxLength: 2 }),
})
const comeBack = step('return', { who, node, holds: fc.boolean() })
const leave = step('leave', { who, isClean: fc.boolean(), rests: fc.boolean() })
const which = fc.constantFrom('all', 'first half', 'last half')

const anything = fc.oneof(
  { weight: 8, arbitrary: publish },
  { weight: 3, arbitrary: subscribe },
  { weight: 1, arbitrary: step('unsubscribe', { who, filter }) },
  { weight: 4, arbitrary: leave },
  { weight: 5, arbitrary: comeBack },
  { weight: 2, arbitrary: step('hold', { who }) },
  { weight: 2, arbitrary: step('acknowledge', { who, which }) },
  { weight: 1, arbitrary: step('end', { who, node }) },
  { weight: 2, arbitrary: step('crash', { node, turns: fc.nat(12) }) },
  { weight: 1, arbitrary: step('pass', { minutes: fc.integer({ min: 1, max: 2 }) }) },
  {
    weight: 3,
    arbitrary: step('trim', {
      times: fc.integer({ min: 1, max: 3 }),
      waits: fc.constantFrom(true, true, false),
    }),
  },
)

const ample: Bounds = {
  windowBytes: 64 * 1024 * 1024,
  history: 100,
  queueLimit: 1_000,
  maxOwed: 1_000,
  inFlightWindow: 100,
  maxInFlight: 1_000,
  maxListed: 50_000,
}

/** Limits so low that a few messages reach them. */
const little: fc.Arbitrary<Bounds> = fc
  .record({
    history: fc.constantFrom(0, 2, 100),
    queueLimit: fc.constantFrom(2, 5, 1_000),
    ofSessions: fc.constantFrom(
      { maxOwed: 1_000, inFlightWindow: 100, maxInFlight: 1_000 },
      { maxOwed: 8, inFlightWindow: 2, maxInFlight: 5 },
      { maxOwed: 4, inFlightWindow: 1, maxInFlight: 2 },
      { maxOwed: 4, inFlightWindow: 4, maxInFlight: 4 },
      { maxOwed: 1_000, inFlightWindow: 100, maxInFlight: 1_000, maxListed: 0 },
      { maxOwed: 8, inFlightWindow: 2, maxInFlight: 5, maxListed: 3 },
    ),
  })
  .map(({ ofSessions, ...rest }) => ({ windowBytes: 1, maxListed: 50_000, ...rest, ...ofSessions }))

const bounds = fc.oneof({ weight: 1, arbitrary: fc.constant(ample) }, { weight: 3, arbitrary: little })

/** Sequences on one or two nodes. One or two sessions subscribe first. */
export const sequences: fc.Arbitrary<Sequence> = fc
  .record({
    nodes: fc.constantFrom(1, 1, 2),
    bounds,
    first: fc.array(fc.tuple(comeBack, subscribe), { minLength: 1, maxLength: 2 }),
    rest: fc.array(anything, { minLength: 3, maxLength: 24, size: 'max' }),
  })
  .map(({ nodes, bounds, first, rest }) => {
    // `maxOwed` does not limit QoS 2, so a low `maxOwed` is tested at QoS 1.
    const isAtQos1 = bounds.maxOwed < ample.maxOwed
    const played = isAtQos1 ? rest.map(atQos1) : rest
    const visits = first.flatMap((visit, who) => visit.map((step): Step => ({ ...step, who }) as Step))
    return { nodes, sessions: 2, bounds, steps: [...visits, ...played] }
  })

function atQos1(step: Step): Step {
  return step.act === 'publish'
    ? { ...step, drafts: step.drafts.map((draft) => ({ ...draft, qos: 1 })) }
    : step
}
