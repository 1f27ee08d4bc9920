import t from 'tap'
import { backOff } from '../../../delivery/runner/back-off.ts'

t.test('pauses double from 1 s to 600 s, with up to a quarter more left to chance', async (t) => {
  const seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 480, 480]
  for (const [index, shortest] of seconds.entries()) {
    t.equal(
      backOff(index + 1, () => 0),
      shortest * 1000,
    )
    t.equal(
      backOff(index + 1, () => 1),
      shortest * 1250,
    )
  }
  for (const failures of [100, 1e6, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]) {
    t.equal(
      backOff(failures, () => 1),
      600_000,
    )
  }
})
