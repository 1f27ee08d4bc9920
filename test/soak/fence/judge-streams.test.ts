import t from 'tap'
import { isBehind, type Journaled, type StreamConnection, wrongInStream } from './judge-streams.ts'

/** The journal: a track at 1, 2 and 5, control states at 3 and 4. */
const journal: Journaled[] = [
  ...[1, 2].map((position) => message(position, 'track')),
  message(3, 'control', 'a'),
  message(4, 'control', 'a'),
  message(5, 'track'),
]

function message(position: number, topic: string, slot = ''): Journaled {
  return { position, topic, marker: `m${position}`, slot, time: position }
}

function connection(
  after: number | undefined,
  readyAt: number,
  ids: number[],
  more: Partial<StreamConnection> = {},
): StreamConnection {
  const events = ids.map((id) => ({ id, marker: `m${id}` }))
  return { node: 0, openedAt: 0, after, readyAt, events, state: [], ...more }
}

function problems(...connections: StreamConnection[]): string[] {
  return wrongInStream({ name: 'r', wants: () => true, connections }, journal).map((line) =>
    line.replace(/^.*?: /, ''),
  )
}

t.test('a stream begins with the newest of each topic and name, and has each event after', async (t) => {
  const state = ['m2', 'm4']
  t.same(problems(connection(undefined, 4, [5], { state })), [])
  t.same(problems(connection(undefined, 4, [4, 5], { state: ['m2', 'm3'] })), [], 'one came while it began')
  t.same(problems(connection(undefined, 4, [], { state: ['m2'] })), ['lacks m4 of control at 4, ready at 4'])
  t.same(problems(connection(undefined, 2, [3, 5], { state: ['m2'] })), [
    'lacks m4 of control at 4, ready at 2',
  ])
  t.same(problems(connection(undefined, 4, [4], { state })), ['m4 comes again behind the state'])
})

t.test('who comes back gets the newest track and all control states', async (t) => {
  t.same(problems(connection(1, 5, [3, 4, 5])), [])
  t.same(problems(connection(1, 4, [2, 3, 4, 5])), [])
  t.same(problems(connection(1, 5, [4, 5])), ['lacks m3 of control at 3, ready at 5'])
  t.same(problems(connection(1, 5, [3, 4])), ['lacks m5 of track at 5, ready at 5'])
})

t.test('nothing comes twice or out of order, in all connections of a reader', async (t) => {
  const first = connection(2, 2, [3, 4])
  t.same(problems(first, connection(4, 5, [5])), [])
  t.same(problems(first, connection(3, 5, [4, 5])), ['4 comes behind 4'])
  t.same(problems(connection(2, 5, [4, 3, 5])), ['3 comes behind 4'])
  const other = connection(4, 4, [], { events: [{ id: 5, marker: 'x' }] })
  t.same(problems(other), ['5 is x, the journal has m5'])
})

t.test('missed is wrong where the store has all, and then the state counts', async (t) => {
  const record = {
    name: 'r',
    wants: () => true,
    connections: [connection(9, 4, [5], { hasMissed: true, state: ['m2', 'm4'] })],
  }
  t.equal(wrongInStream(record, journal).length, 1)
  t.same(wrongInStream(record, journal, true), [])
  t.notOk(isBehind(record, journal))
  t.ok(isBehind({ ...record, connections: [connection(4, 4, [])] }, journal))
})
