import t from 'tap'
import { endOf, nameOf } from '../../client/worth.ts'
import { control, data, playing, station } from '../events.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const at = (seconds: number) => new Date(now + seconds * 1000).toISOString()
const payload = JSON.stringify

t.test('a control state is not worth sending when its validUntil has passed', async (t) => {
  t.equal(endOf(payload(control(station(), { validUntil: at(0) })), now), at(0))
  t.equal(endOf(payload(control(station(), { validUntil: at(1) })), now), undefined)
})

t.test('the hub decides about the end of what cannot be judged here', async (t) => {
  for (const odd of [
    control(station(), { validUntil: null }),
    control(station(), { validUntil: 'yesterday' }),
    data(station(), { validUntil: at(-1) }),
    { event: 7 },
    [],
    null,
  ]) {
    t.equal(endOf(payload(odd), now), undefined, payload(odd))
  }
})

t.test('an event is known by its playlistItemId, else by its time', async (t) => {
  t.equal(
    nameOf(payload(playing(station(), { playlistItemId: 'item "7"' }))),
    'playlistItemId "item \\"7\\""',
  )
  t.equal(nameOf(payload(playing(station(), { playlistItemId: '', start: at(0) }))), `start "${at(0)}"`)
  t.equal(nameOf(payload(control(station(), { time: at(1) }))), `time "${at(1)}"`)
  t.equal(nameOf('{"event":7}'), 'start undefined')
  t.equal(nameOf('[]'), 'start undefined')
})
