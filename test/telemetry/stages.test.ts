import t from 'tap'
import { createStages } from '../../telemetry/stages.ts'

const at = Date.parse('2026-01-31T12:00:00Z')

t.test('what an event took is known until its place is taken by a later one', async (t) => {
  const stages = createStages(() => {})
  for (const position of [7, 9_999, 10_007]) finish(stages, position)
  t.equal(stages.of(7), undefined, 'too long ago')
  t.match(stages.of(9_999), { id: 'id-9999', event: 'playing', position: 9_999, at })
  t.match(stages.of(10_007), { id: 'id-10007', position: 10_007 })
  t.equal(stages.of(8), undefined, 'never there')
})

t.test('recipients of a message are added up', async (t) => {
  const stages = createStages(() => {})
  stages.sent(7, 3)
  stages.sent(7, 2)
  t.equal(stages.recipientsOf(7), 5)
  stages.sent(10_007, 1)
  t.equal(stages.recipientsOf(7), undefined, 'too long ago')
  t.equal(stages.recipientsOf(10_007), 1)
})

t.test('what is known of a slow event stays as it was when its place is taken', async (t) => {
  const stages = createStages(() => {})
  finish(stages, 7)
  finish(stages, 10_007)
  t.strictSame(
    stages
      .slowest(at)
      .map(({ position }) => position)
      .sort(),
    [10_007, 7],
  )
})

function finish(stages: ReturnType<typeof createStages>, position: number): void {
  const way = stages.begin(performance.now())
  way.position = position
  stages.finish(way, `id-${position}`, 'playing', at)
}
