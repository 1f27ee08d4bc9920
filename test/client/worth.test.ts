import t from 'tap'
import { notWorthSending, type Sendable } from '../../client/worth.ts'
import { control, data, playing, serviceOf, station } from '../events.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const at = (seconds: number) => new Date(now + seconds * 1000).toISOString()

t.test('a track event with a newer one behind it for all its livestreams is not worth sending', async (t) => {
  const old = waiting(playing(station(), { start: at(0) }))
  const newer = waiting(playing(station(), { start: at(180) }))
  t.same(notWorthSending([old, newer], now), [old])
  t.same(notWorthSending([newer, old], now), [], 'one behind it that is older says nothing')
})

t.test('of two with the same start the later one counts', async (t) => {
  const [first, second] = [
    waiting(playing(station(), { start: at(0) })),
    waiting(playing(station(), { start: at(0) })),
  ]
  t.same(notWorthSending([first, second], now), [first])
})

t.test('a livestream that nothing newer stands behind makes the event worth sending', async (t) => {
  const services = [serviceOf(station(0, 0)), serviceOf(station(0, 1))]
  const both = waiting(playing(station(), { start: at(0), services }))
  const one = waiting(playing(station(0, 0), { start: at(180) }))
  const other = waiting(playing(station(0, 1), { start: at(180) }))
  t.same(notWorthSending([both, one], now), [])
  t.same(notWorthSending([both, one, other], now), [both])
})

t.test('playing, next and data say nothing about each other', async (t) => {
  const next = { event: 'de.org.hub.v1.radio.track.next' }
  const events = [
    waiting(playing(station(), { start: at(0) })),
    waiting(playing(station(), { ...next, start: at(180) })),
    waiting(data(station(), { start: at(200) })),
    waiting(data(station(), { start: at(230) })),
  ]
  t.same(notWorthSending(events, now), [])
})

t.test('a control state is not worth sending when its validUntil has passed', async (t) => {
  const ended = waiting(control(station(), { validUntil: at(0) }))
  const valid = waiting(control(station(), { validUntil: at(1) }))
  t.same(notWorthSending([ended, valid], now), [ended])
})

t.test('an acknowledged event only waits for its report', async (t) => {
  const old = { ...waiting(playing(station(), { start: at(0) })), isAcknowledged: true }
  const ended = { ...waiting(control(station(), { validUntil: at(-1) })), isAcknowledged: true }
  t.same(notWorthSending([old, ended, waiting(playing(station(), { start: at(180) }))], now), [])
})

t.test('the hub decides about an event that cannot be judged here', async (t) => {
  const newer = waiting(playing(station(), { start: at(180) }))
  for (const odd of [
    playing(station(), { start: 'yesterday' }),
    playing(station(), { services: [] }),
    playing(station(), { services: 'all' }),
    control(station(), { validUntil: null }),
    { event: 7 },
    [],
  ]) {
    t.same(notWorthSending([waiting(odd), newer], now), [], JSON.stringify(odd).slice(0, 100))
  }
})

function waiting(event: object): Sendable {
  return { payload: JSON.stringify(event), isAcknowledged: false }
}
