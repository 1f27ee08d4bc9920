import t from 'tap'
import type { Entry } from '../../../journal/entry.ts'
import { createRecentReports } from '../../../journal/history/recent-reports.ts'

t.test('the newest reports behind a position, and how many more there were', async (t) => {
  const { reports, decide } = start(0)
  for (let position = 1; position <= 10; position++) decide(position, position % 2 === 0)
  t.same(reports.after(0, 100), { found: [2, 4, 6, 8, 10], leftOut: 0 })
  t.same(reports.after(4, 100), { found: [6, 8, 10], leftOut: 0 })
  t.same(reports.after(5, 2), { found: [8, 10], leftOut: 1 })
  t.same(reports.after(10, 2), { found: [], leftOut: 0 })
  t.same(reports.after(99, 2), { found: [], leftOut: 0 })
})

t.test('of what was before the start it is not known how many there were', async (t) => {
  const { reports, decide } = start(100)
  decide(101, true)
  t.same(reports.after(99, 10), { found: [101], leftOut: null })
  t.same(reports.after(100, 10), { found: [101], leftOut: 0 })
})

t.test('of a flood the newest are told, and the number of the others as long as it is known', async (t) => {
  const { reports, decide } = start(0)
  for (let position = 1; position <= 60_000; position++) decide(position, true)
  t.same(reports.after(50_000, 3), { found: [59_998, 59_999, 60_000], leftOut: 9_997 })
  for (let position = 60_001; position <= 100_000; position++) decide(position, true)
  t.same(reports.after(34_464, 1), { found: [100_000], leftOut: 65_535 })
  t.same(reports.after(34_463, 1), { found: [100_000], leftOut: null })
})

function start(head: number) {
  let follower: (entry: Entry) => void = () => undefined
  const onEach = (listener: typeof follower) => {
    follower = listener
    return () => undefined
  }
  const reports = createRecentReports({ onEach, head: () => head })
  const message = { topic: 'a', qos: 1, queue: { keep: 'every' }, payload: Buffer.alloc(0), at: 0 } as const
  return {
    reports,
    decide: (position: number, isReport: boolean) =>
      follower({ ...message, position, ...(isReport && { isReport }) }),
  }
}
