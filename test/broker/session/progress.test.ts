import t from 'tap'
import { unsettledOf } from '../../../broker/session/progress.ts'
import { createSession, type Session } from '../../../broker/session/session.ts'

const owed = (count: number) =>
  Array.from({ length: count }, (_, nth) => ({
    position: nth + 1,
    qos: 1 as const,
    retain: true,
    dup: false,
  }))

function session(clientId: string, backlog: number, fields: Partial<Session> = {}): Session {
  const of = { clientId, clean: false, permission: '', createdAt: 1, connection: undefined }
  const principal = { role: 'subscriber' as const, username: 'u', filters: ['#'] }
  return { ...createSession({ ...of, principal }), backlog: owed(backlog), storedUpTo: 0, ...fields }
}

const placeOf = ({ upTo, backlog }: Session) => ({
  upTo,
  owed: backlog.map(({ position }): [number, 1, number] => [position, 1, 1]),
})

t.test('sessions that are not settled are named with what they are owed', async (t) => {
  const all = [session('a', 2), session('clean', 2, { clean: true }), session('live', 0, { reading: 'live' })]
  t.strictSame(Object.entries(unsettledOf(all, placeOf)), [
    [
      'a',
      {
        createdAt: 1,
        upTo: 0,
        owed: [
          [1, 1, 1],
          [2, 1, 1],
        ],
      },
    ],
  ])
})

t.test('beyond a bound the large ones are as their record says, where it knows enough', async (t) => {
  const many = Array.from({ length: 60 }, (_, nth) => session(`${nth}`, 1_000))
  const moved = session('moved', 1_000, { upTo: 7 })
  const atQos2 = session('qos 2', 1_000, { hasSentQos2: true })
  const unsettled = unsettledOf([...many, moved, atQos2, session('none', 0)], placeOf)
  const named = Object.entries(unsettled).filter(([, place]) => place !== null)
  t.equal(named.length, 50 + 3 - 1)
  t.strictSame(unsettled['59'], null)
  t.ok(unsettled.moved)
  t.ok(unsettled['qos 2'])
})

t.test('any client id is named', async (t) => {
  const unsettled = unsettledOf([session('__proto__', 1), session('constructor', 1)], placeOf)
  t.match(JSON.parse(JSON.stringify(unsettled)).constructor, { upTo: 0 })
  t.match(Object.entries(JSON.parse(JSON.stringify(unsettled))), [
    ['__proto__', { upTo: 0 }],
    ['constructor', {}],
  ])
})
