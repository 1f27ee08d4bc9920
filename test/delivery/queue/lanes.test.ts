import fc from 'fast-check'
import t from 'tap'
import { laneOf } from '../../../delivery/queue/lane-of.ts'
import { lanesOf, waitingInLane } from '../../../delivery/queue/lanes.ts'
import { addTo, emptyQueue, replaceIn, takeFrom } from '../../../delivery/queue/queue.ts'
import type { WorkItem } from '../../../delivery/queue/work-item.ts'

const item = (sequence: number, livestreams: readonly string[], asideUntil?: number): WorkItem => ({
  sequence,
  messageId: String(sequence),
  details: { livestreamIds: livestreams.join(',') },
  element: {
    event: 'playing',
    time: sequence,
    livestreams: Object.fromEntries(livestreams.map((id) => [id, 0])),
  },
  position: sequence,
  enqueuedAt: sequence,
  seen: 0,
  tries: 0,
  refusals: 0,
  attempts: [],
  ...(asideUntil !== undefined && { asideUntil }),
})

/** Above this, sequences are those of items that came since the queue began. */
const since = 1e15
const sequence = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: since + 1, max: since + 20 }))
const livestreams = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(['a'], ['b'], ['c']) },
  { weight: 1, arbitrary: fc.constantFrom(['a', 'b'], ['c', 'a'], []) },
)
const step = fc.oneof(
  fc.record({ add: sequence, livestreams }),
  fc.record({ take: fc.array(sequence, { maxLength: 30 }) }),
  fc.record({ aside: sequence }),
  fc.record({ tried: sequence }),
)

t.test(
  'what waits in a lane is found without a search, whatever was added, taken and set aside',
  async (t) => {
    let several = 0
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat({ max: 60 }), (steps, asked) => {
        const queue = emptyQueue()
        const added = new Map<number, WorkItem>()
        for (const [nth, one] of steps.entries()) {
          // From then on, the lanes are kept.
          if (nth === asked) lanesOf(queue)
          if ('add' in one) {
            if (added.has(one.add)) continue
            const made = item(one.add, one.livestreams)
            added.set(one.add, made)
            addTo(queue, made)
          } else if ('take' in one) takeFrom(queue, new Set(one.take))
          else {
            const number = 'aside' in one ? one.aside : one.tried
            const before = queue.inOrder.find((each) => each.sequence === number)
            if (before) replaceIn(queue, { ...before, tries: 1, ...('aside' in one && { asideUntil: 5 }) })
          }
        }
        several += queue.ofSeveral
        const all = [...queue.inOrder, ...queue.aside]
        t.strictSame(lanesOf(queue), new Set(all.map(laneOf)))
        for (const lane of ['a', 'b', 'c', '?']) {
          const searched = waitingInLane({ ...queue, ofSeveral: 1 }, lane, 10)
          t.strictSame(waitingInLane(queue, lane, 10), searched)
        }
        t.equal(
          queue.ofSeveral,
          queue.inOrder.filter(({ element }) => Object.keys(element?.livestreams ?? {}).length !== 1).length,
        )
      }),
      { numRuns: 200 },
    )
    t.ok(several > 0, 'some items were for several livestreams')
  },
)

t.test('an item for several livestreams waits for those before it in all of their lanes', async (t) => {
  const queue = emptyQueue()
  for (const [number, ids] of [['a'], ['b', 'a'], ['b'], ['c']].entries())
    addTo(queue, item(since + 1 + number, ids))
  const heads = ['a', 'b', 'c'].map((lane) => {
    const { head, isBlocked } = waitingInLane(queue, lane, 0)
    return [lane, head && head.sequence - since, isBlocked]
  })
  t.strictSame(heads, [
    ['a', 1, false],
    ['b', undefined, true],
    ['c', 4, false],
  ])
})
