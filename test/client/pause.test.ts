import t from 'tap'
import { pauseAfter } from '../../client/pause.ts'

t.test('pauses double to five seconds, and after two minutes grow to a minute', async (t) => {
  for (const [failures, outageSeconds, seconds] of [
    [1, 0, 1],
    [2, 1, 2],
    [3, 3, 4],
    [4, 7, 5],
    [30, 119, 5],
    [30, 130, 10],
    [40, 160, 40],
    [60, 600, 60],
    [2_000, 100_000, 60],
    [1, 600, 1],
  ] as const) {
    for (let nth = 0; nth < 50; nth++) {
      const pause = pauseAfter(failures, outageSeconds * 1000)
      t.ok(
        pause >= seconds * 500 && pause <= seconds * 1000,
        `${failures} failures, ${outageSeconds} s: ${pause} ms`,
      )
    }
  }
})
