import t from 'tap'
import { eventKinds, type HubEvent } from '../../event/kind.ts'
import { createProgramme, emptyCounts, type Sums } from '../../watch/programme.ts'
import { createRecords } from '../../watch/records.ts'
import { data, playing, station } from '../events.ts'

/* What weekly reports count of the events of a livestream (open.md §7). Time is simulated. */

const minutes = 60_000
const monday = Date.parse('2026-01-05T06:00:00Z')

/** A livestream from Monday morning on. Each step tells how many minutes after it an event comes. */
function livestream() {
  const programme = createProgramme(createRecords(() => ({})))
  const total = emptyCounts()
  let institutionId = 'urn:one'
  const told = (kind: string, at: number, fields: Record<string, unknown>, isInterrupted = false) => {
    const event: HubEvent = JSON.parse(JSON.stringify(fields))
    const row = eventKinds.find(({ name }) => name === event.event)
    if (!row) throw new Error(`no kind ${kind}`)
    const time = Date.parse(String(fields.start))
    const circumstances = { now: monday + at * minutes, isInterrupted }
    programme.count(total, 'urn:a', { event, kind: row, time, institutionId }, circumstances)
  }
  const track = (at: number, id: string, more: Record<string, unknown> = {}) =>
    playing(station(), {
      start: new Date(monday + at * minutes).toISOString(),
      length: 180,
      playlistItemId: id,
      ...more,
    })
  return {
    plays: (at: number, id: string, more: Record<string, unknown> = {}, isInterrupted = false) =>
      told('playing', at, track(at, id, more), isInterrupted),
    announces: (at: number, id: string) =>
      told('next', at, track(at, id, { event: 'de.org.hub.v1.radio.track.next' })),
    changesHands(to: string) {
      institutionId = to
    },
    otherNodeCounts: programme.forget,
    says: (at: number) => told('data', at, data(station())),
    total,
    sums: (...names: (keyof Sums)[]) => Object.fromEntries(names.map((name) => [name, total.sums[name]])),
  }
}

t.test('an element counts once, however often its event is sent', async (t) => {
  const { plays, says, sums } = livestream()
  plays(0, 'a')
  plays(1, 'a', { title: 'Corrected' })
  plays(2, 'a', { start: new Date(monday).toISOString() })
  says(2.5)
  plays(3, 'b')
  t.same(sums('events', 'elements', 'late', 'gaps'), { events: 5, elements: 2, late: 0, gaps: 0 })
})

t.test('late is an element whose event comes more than 30 s after its start', async (t) => {
  const { plays, sums } = livestream()
  const startedBefore = (at: number, seconds: number) => ({
    start: new Date(monday + at * minutes - seconds * 1000).toISOString(),
  })
  plays(0, 'a', startedBefore(0, 30))
  plays(3, 'b', startedBefore(3, 31))
  plays(6, 'c', startedBefore(6, -20))
  t.same(sums('elements', 'late'), { elements: 3, late: 1 })
})

t.test('music without ISRC, artist or cover; other types need none', async (t) => {
  const { plays, sums } = livestream()
  const cover = { type: 'cover', url: 'https://media.example/1.jpg', description: '' }
  plays(0, 'a', { isrc: 'DEXX12600042', media: [cover] })
  plays(3, 'b', { isrc: ' ', artist: null, media: [{ ...cover, isFallback: true }] })
  plays(6, 'c', { type: 'news', artist: null })
  t.same(sums('elements', 'music', 'withoutIsrc', 'withoutArtist', 'withoutCover'), {
    elements: 3,
    music: 2,
    withoutIsrc: 1,
    withoutArtist: 1,
    withoutCover: 1,
  })
})

t.test('a gap is longer than 10 minutes, from the end of an element to the next start', async (t) => {
  const { plays, total, sums } = livestream()
  plays(0, 'a')
  plays(13, 'b')
  t.same(sums('gaps'), { gaps: 0 }, 'exactly ten minutes')
  plays(27, 'c')
  t.same(sums('gaps', 'gapMinutes'), { gaps: 1, gapMinutes: 11 })
  t.same(total.longest, [{ from: monday + 16 * minutes, minutes: 11 }])
  plays(60, 'd', {}, true)
  t.same(sums('gaps'), { gaps: 1 }, 'the hub itself got no events')
  plays(63, 'e')
  for (let n = 1; n <= 8; n++) plays(63 + n * 60 + n * n, `f${n}`)
  t.same(
    total.longest.map(({ minutes }) => minutes),
    [72, 70, 68, 66, 64],
  )
})

t.test('how often next came true', async (t) => {
  const { plays, announces, sums } = livestream()
  const all = () => sums('announced', 'cameTrue')
  plays(0, 'a')
  announces(1, 'b')
  announces(2, 'b')
  plays(3, 'b')
  t.same(all(), { announced: 1, cameTrue: 1 })
  plays(6, 'c')
  t.same(all(), { announced: 1, cameTrue: 1 }, 'nothing was announced')
  announces(7, 'd')
  plays(9, 'other')
  t.same(all(), { announced: 2, cameTrue: 1 })
  announces(10, 'e')
  announces(11.9, 'f')
  plays(12, 'e')
  t.same(all(), { announced: 3, cameTrue: 2 }, 'what comes behind it was told first')
  plays(15, 'f')
  t.same(all(), { announced: 4, cameTrue: 3 })
  announces(15, 'f')
  plays(18, 'g')
  t.same(all(), { announced: 4, cameTrue: 3 }, 'what plays already is not announced')
})

t.test('what an institution published counts nothing of the next one', async (t) => {
  const { plays, announces, changesHands, sums } = livestream()
  plays(0, 'a', { start: new Date(monday + 9 * minutes).toISOString() })
  announces(1, 'b')
  changesHands('urn:two')
  plays(5, 'b')
  t.same(sums('elements', 'announced', 'gaps'), { elements: 2, announced: 0, gaps: 0 })
  announces(6, 'c')
  changesHands('urn:one')
  plays(60, 'c')
  t.same(sums('elements', 'announced', 'gaps'), { elements: 3, announced: 0, gaps: 0 })
})

t.test('what another node has counted meanwhile is no gap, and no announcement', async (t) => {
  const { plays, announces, otherNodeCounts, sums } = livestream()
  plays(0, 'a')
  announces(1, 'b')
  otherNodeCounts()
  plays(60, 'c')
  t.same(sums('elements', 'gaps', 'announced'), { elements: 2, gaps: 0, announced: 0 })
})

t.test('hostile and wrong times: no gap of years, and one wrong clock spoils nothing', async (t) => {
  const { plays, total, sums } = livestream()
  plays(0, 'a', { start: '1970-01-01T00:00:00Z' })
  plays(3, 'b')
  t.same(sums('gaps'), { gaps: 0 })
  plays(6, 'c', { start: '2099-01-01T00:00:00Z' })
  plays(17, 'd')
  t.same(sums('elements', 'late'), { elements: 4, late: 1 })
  plays(20, 'e', { length: 1e12 })
  plays(60, 'f')
  t.same(sums('elements', 'gaps'), { elements: 6, gaps: 0 })
  plays(61, 'old', { start: new Date(monday).toISOString() })
  t.same(sums('elements'), { elements: 6 }, 'what came late is not on air any more')
  plays(63, ' ', { title: 'x'.repeat(1_000) })
  plays(66, ' ', { title: 'y' })
  t.same(sums('elements'), { elements: 8 }, 'without an id, title and start tell elements apart')
  t.ok(Object.values(total.sums).every(Number.isSafeInteger))
})
