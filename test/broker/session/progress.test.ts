import t from 'tap'
import { divide } from '../../../broker/session/progress.ts'
import { createSession, type Session } from '../../../broker/session/session.ts'
import { Waiting } from '../../../broker/session/waiting.ts'

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
  return { ...createSession({ ...of, principal }), backlog: new Waiting(owed(backlog)), ...fields }
}

const names = (sessions: readonly Session[]) => sessions.map(({ clientId }) => clientId)

t.test('sessions that are not settled are listed', async (t) => {
  const all = [session('a', 2), session('clean', 2, { clean: true }), session('live', 0, { reading: 'live' })]
  const { listed, others } = divide(all, 10)
  t.strictSame([names(listed), names(others)], [['a'], []])
})

t.test('beyond a bound, those that are owed least are listed', async (t) => {
  const all = [session('most', 5), session('few', 2), session('many', 4), session('none', 0)]
  const { listed, others } = divide(all, 9)
  t.strictSame([names(listed), names(others)], [['none', 'few', 'many'], ['most']])
})

t.test('a bound counts sessions that are owed nothing, too', async (t) => {
  const { listed, others } = divide([session('a', 0), session('b', 0), session('c', 0)], 2)
  t.strictSame([names(listed), names(others)], [['a', 'b'], ['c']])
})
