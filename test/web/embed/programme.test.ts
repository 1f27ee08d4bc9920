import t from 'tap'
import { controlsOn, upNext } from '../../../client/now-playing.ts'
import { settle, silent, staysUntil, take } from '../../../web/embed/programme.ts'
import { control, playing, station } from '../../events.ts'

const noon = Date.parse('2026-03-01T12:00:00Z')
const minute = 60_000
const at = (ms: number) => new Date(noon + ms).toISOString()

t.test('a title is shown from its start, what is next at once', async (t) => {
  const next = { ...track('next', 5 * minute), event: 'de.org.hub.v1.radio.track.next' }
  const events = [track('before', -minute), track('ahead', minute), next, track('later', 2 * minute)]
  let programme = settle(events.reduce(take, silent), noon)
  t.equal(programme.shown.playing?.title, 'before')
  t.equal(upNext(programme.shown)?.title, 'next')
  t.equal(staysUntil(programme, noon), noon + minute)
  programme = settle(programme, noon + minute)
  t.equal(programme.shown.playing?.title, 'ahead')
  t.equal(staysUntil(programme, noon + minute), noon + 2 * minute)
  programme = settle(programme, noon + 10 * minute)
  t.equal(programme.shown.playing?.title, 'later')
  t.equal(programme.waiting.length, 0)
  t.equal(staysUntil(programme, noon + 10 * minute), Infinity)
})

t.test('a control state stays until its end', async (t) => {
  const state = control(station(), { time: at(0), validUntil: at(3 * minute) })
  const programme = settle(take(silent, state), noon)
  t.equal(controlsOn(programme.shown, noon).length, 1)
  t.equal(staysUntil(programme, noon), noon + 3 * minute)
  t.equal(staysUntil(programme, noon + 3 * minute), Infinity)
})

t.test('what is no event changes nothing, and announcements without end fill no memory', async (t) => {
  const wrong = [null, 'text', {}, { event: 'constructor' }, { ...track('x', 0), start: 'soon' }]
  t.same(settle(wrong.reduce(take, silent), noon), silent)
  const ahead = Array.from({ length: 1_000 }, (_, index) => track(`t${index}`, minute + index))
  const programme = settle(ahead.reduce(take, silent), noon)
  t.equal(programme.waiting.length, 200)
  t.equal(settle(programme, noon + 2 * minute).shown.playing?.title, 't999', 'the newest stay')
})

function track(title: string, ms: number) {
  return { ...playing(station(), { title, start: at(ms), playlistItemId: title }) }
}
