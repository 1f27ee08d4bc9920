import t from 'tap'
import { matches, missing, outOfOrder, type Sent, type SessionRecord, sentAgain, unwanted } from './judge.ts'

/** An event that is sent at `sentAt`, and acknowledged 10 ms later. */
function event(
  marker: string,
  sentAt: number,
  kind: Sent['kind'] = 'control',
  topic = 'radio/x/control',
): Sent {
  return { marker, kind, livestream: 'x', topic, sentAt, attempts: 1, acknowledgedAt: sentAt + 10 }
}

function session(
  filters: [at: number, state: SessionRecord['filters'][number]['state']][],
  received: [marker: string, at: number][] = [],
  endedAt: number[] = [],
): SessionRecord {
  return {
    clientId: 's',
    filters: filters.map(([at, state]) => ({ at, filter: 'radio/x/#', state })),
    endedAt,
    received: received.map(([marker, at]) => {
      return { marker, at, isRetained: false, isDuplicate: false, connection: 1 }
    }),
  }
}

t.test('an event is owed where a filter was granted all the time until it was acknowledged', async (t) => {
  const sent = [event('e', 100)]
  const { acknowledgedAt: _never, ...unacknowledged } = event('e', 100)
  const lost = ['s misses e of radio/x/control']
  t.same(missing(session([[50, 'granted']]), sent), lost)
  const unsubscribed = (at: number) =>
    session([
      [50, 'granted'],
      [at, 'unknown'],
      [at + 10, 'removed'],
    ])
  t.same(missing(unsubscribed(31_000), sent), lost, 'it was begun before the UNSUBSCRIBE')
  t.same(missing(unsubscribed(200), sent), [], 'an UNSUBSCRIBE ends what was not begun')
  t.same(missing(session([[50, 'granted']], [['e', 150]]), sent), [])
  t.same(missing(session([[105, 'granted']]), sent), [], 'granted too late')
  t.same(
    missing(
      session([
        [50, 'granted'],
        [105, 'unknown'],
      ]),
      sent,
    ),
    [],
    'given up meanwhile',
  )
  t.same(missing(session([[50, 'unknown']]), sent), [], 'no SUBACK')
  t.same(missing(session([[50, 'granted']], [], [300]), sent), [], 'the session has ended')
  t.same(missing(session([[50, 'granted']], [], [60]), sent), lost, 'it ended before')
  t.same(missing(session([[50, 'granted']]), [unacknowledged]), [])
})

t.test('of tracks only the newest of a topic is owed', async (t) => {
  const sent = [
    event('1', 100, 'track', 'radio/x/track/playing'),
    event('2', 200, 'track', 'radio/x/track/playing'),
  ]
  t.same(missing(session([[50, 'granted']], [['2', 250]]), sent), [])
  t.same(missing(session([[50, 'granted']], [['1', 250]]), sent), ['s misses 2 of radio/x/track/playing'])
})

t.test('nothing is delivered that was published after all filters were removed', async (t) => {
  const sent = [event('e', 100)]
  const strange = ['s gets e of radio/x/control without a filter']
  t.same(
    unwanted(
      session(
        [
          [10, 'granted'],
          [50, 'removed'],
        ],
        [['e', 150]],
      ),
      sent,
    ),
    strange,
  )
  t.same(
    unwanted(
      session(
        [
          [10, 'granted'],
          [105, 'removed'],
        ],
        [['e', 150]],
      ),
      sent,
    ),
    [],
  )
  t.same(unwanted(session([[10, 'unknown']], [['e', 150]]), sent), [])
  t.same(
    unwanted(
      session(
        [
          [120, 'unknown'],
          [130, 'granted'],
        ],
        [['e', 150]],
      ),
      sent,
    ),
    [],
  )
})

t.test('what was acknowledged is not sent again in its connection', async (t) => {
  const twice = session(
    [[10, 'granted']],
    [
      ['e', 150],
      ['e', 160],
    ],
  )
  t.same(sentAgain(twice, [event('e', 100)]), ['s gets e again in one connection'])
  t.same(sentAgain(twice, [{ ...event('e', 100), attempts: 2 }]), [], 'it was published twice')
  const [first, second] = twice.received
  if (!first || !second) return
  for (const fields of [{ isDuplicate: true }, { connection: 2 }, { isRetained: true }]) {
    t.same(sentAgain({ ...twice, received: [first, { ...second, ...fields }] }, [event('e', 100)]), [])
  }
})

t.test('deliveries begin in the order of acceptance, repetitions aside', async (t) => {
  const sent = ['1', '2', '3'].map((marker, index) => event(marker, index))
  t.same(outOfOrder(sent, ['1', '2', '1', '3', '2']), [])
  t.same(outOfOrder(sent, ['1', '3', '2']), ['3 came before 2'])
})

t.test('filters match as MQTT has it', async (t) => {
  for (const [filter, topic, isMatch] of [
    ['radio/x/#', 'radio/x', true],
    ['radio/x/#', 'radio/x/track/playing', true],
    ['radio/+/control', 'radio/x/control', true],
    ['radio/+/control', 'radio/x/data', false],
    ['radio/+', 'radio/x/data', false],
  ] as const) {
    t.equal(matches(filter, topic), isMatch, `${filter} ${topic}`)
  }
})
