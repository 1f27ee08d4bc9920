import t from 'tap'
import { createNowPlaying } from '../../client/now-playing-of-all.ts'
import { control, playing, station } from '../events.ts'

t.test(
  'a hub that invents livestreams fills nothing: those that were silent longest go, told once',
  async (t) => {
    let told = 0
    const limits = { livestreams: 3, characters: 1_000_000 }
    const kept = createNowPlaying(
      () => {},
      () => told++,
      limits,
    )
    t.teardown(kept.close)
    for (const id of ['quiet', 'lively', 'one']) kept.take(id, control(station()))
    t.equal(told, 0)
    kept.take('lively', playing(station()))
    for (const id of ['two', 'three']) kept.take(id, playing(station()))
    t.same(
      [...kept].map(([id]) => id),
      ['lively', 'two', 'three'],
    )
    t.equal(kept.get('quiet'), undefined)
    t.equal(told, 1)
  },
)

t.test('long texts count, and the newest livestream stays however long they are', async (t) => {
  let told = 0
  const kept = createNowPlaying(
    () => {},
    () => told++,
    { livestreams: 100, characters: 1_000 },
  )
  t.teardown(kept.close)
  for (const id of ['one', 'two']) kept.take(id, playing(station(), { title: 'x'.repeat(300) }))
  t.equal(kept.size, 2)
  kept.take('two', playing(station(), { title: 'x'.repeat(5_000) }))
  t.same(
    [...kept].map(([id]) => id),
    ['two'],
  )
  for (let nth = 0; nth < 50; nth++) kept.take('two', control(station(), { name: `${nth}`.repeat(100) }))
  kept.take('two', playing(station(), { title: 'short' }))
  t.equal(told, 1)
})
