import t from 'tap'
import { after, controlsOn, isNews, type NowPlaying, nothing, upNext } from '../../client/now-playing.ts'
import { control, data, playing, station } from '../events.ts'

const noon = Date.parse('2026-03-01T12:00:00Z')
const minute = 60_000

t.test('the later time counts; of two equal ones the later arrival', async (t) => {
  for (const [time, shown, expected] of [
    [noon, undefined, true],
    [noon, noon - 1, true],
    [noon, noon, true],
    [noon, noon + 0.5, false],
    [noon, noon + 10 * minute, false],
    [noon, noon + 10 * minute + 1, true],
  ] as const) {
    t.equal(isNews(time, shown, noon), expected, `${time} after ${shown}`)
  }
})

t.test('times are compared as instants, in every form that publishers may write', async (t) => {
  let known = afterAll(track('first', '2026-03-01T13:00:00,250+01'))
  t.equal(afterAll(track('x', 'yesterday')).playing, undefined, 'what is no instant is no event')
  known = after(known, track('earlier', '2026-03-01T12:00:00.2Z'), noon)
  t.equal(known.playing?.title, 'first')
  known = after(known, track('later', '2026-03-01T12:00.5z'), noon)
  t.equal(known.playing?.title, 'later')
})

t.test('an event that is old, or of another kind, changes nothing at all', async (t) => {
  const known = afterAll(track('now', '2026-03-01T12:00:00Z'))
  for (const event of [
    track('old', '2026-03-01T11:00:00Z'),
    { ...track('x', '2026-03-01T12:01:00Z'), event: 'de.org.hub.v2.radio.mood' },
    { ...track('x', '2026-03-01T12:01:00Z'), event: 'constructor' },
    { start: '2026-03-01T12:01:00Z' },
    null,
    'text',
    [track('x', '2026-03-01T12:01:00Z')],
  ]) {
    t.equal(after(known, event, noon), known)
  }
})

t.test('control states live side by side by name, and end by state or by time', async (t) => {
  const at = (second: number) => new Date(noon + second * 1000).toISOString()
  const state = (name: string, time: number, isOn: boolean, end = 60) =>
    control(station(), { name, time: at(time), state: isOn, validUntil: at(end) })
  const known = afterAll(
    state('traffic', 0, true),
    state('mute', 1, true, 30),
    state('traffic', 2, false),
    state('traffic', 1, true),
    state('emergency', 3, true),
  )
  const names = (second: number) => controlsOn(known, noon + second * 1000).map(({ name }) => name)
  t.strictSame(names(10), ['mute', 'emergency'])
  t.strictSame(names(30), ['emergency'], 'from validUntil on it is over')
  t.strictSame(names(60), [])
})

t.test('names of states without end fill nothing', async (t) => {
  const states = Array.from({ length: 500 }, (_, index) => control(station(), { name: `n${index}` }))
  t.equal(afterAll(...states).controls.length, 100)
})

t.test('what is next is shown until it plays, or something later does', async (t) => {
  const next = (item: string, start: string) => ({
    ...track(item, start),
    event: 'de.org.hub.v1.radio.track.next',
    playlistItemId: item,
  })
  const coming = next('b', '2026-03-01T12:03:00Z')
  t.equal(upNext(afterAll(track('a', '2026-03-01T12:00:00Z'), coming))?.title, 'b')
  t.equal(upNext(afterAll(coming))?.title, 'b', 'also where nothing plays')
  const began = { ...track('b', '2026-03-01T12:02:55Z'), playlistItemId: 'b' }
  t.equal(upNext(afterAll(coming, began)), undefined)
  t.equal(upNext(afterAll(coming, track('c', '2026-03-01T12:04:00Z'))), undefined)
})

t.test('a cover is an https URL, and rather not a stand-in', async (t) => {
  const cover = (...media: unknown[]) =>
    afterAll({ ...track('a', '2026-03-01T12:00:00Z'), media }).playing?.cover
  const one = { type: 'cover', url: 'https://media.example/a.png' }
  t.equal(cover(one), one.url)
  t.equal(cover({ ...one, url: 'https://media.example/b.png', isFallback: true }, one), one.url)
  t.equal(cover({ ...one, isFallback: true }), one.url)
  t.equal(cover({ ...one, type: 'artist' }), undefined)
  for (const url of [
    'javascript:alert(1)',
    'http://media.example/a.png',
    'data:image/png;base64,',
    '/a',
    '',
    7,
  ]) {
    t.equal(cover({ type: 'cover', url }), undefined, String(url))
    t.equal(cover({ type: 'cover', url }, one), one.url)
  }
  t.equal(cover('text', null), undefined)
})

t.test('fields that are missing, or of another type, are empty', async (t) => {
  const { playing: shown } = afterAll(
    track('a', '2026-03-01T12:00:00Z', { artist: null, media: null, length: '3' }),
  )
  t.match(shown, { artist: '', cover: undefined, length: 0 })
  t.equal(afterAll(data(station(), { start: '2026-03-01T12:00:00Z', text: { a: 1 } })).text?.text, '')
})

function afterAll(...events: unknown[]): NowPlaying {
  return events.reduce((known: NowPlaying, event) => after(known, event, noon), nothing)
}

function track(title: string, start: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return playing(station(), { title, start, ...fields })
}
