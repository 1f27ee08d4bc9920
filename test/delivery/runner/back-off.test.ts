import t from 'tap'
import { backOff } from '../../../delivery/runner/back-off.ts'

t.test(
  'pauses begin with 1 to 2 s and double up to 600 s, the upper half of each left to chance',
  async (t) => {
    const seconds = [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    for (const [index, longest] of seconds.entries()) {
      t.equal(
        backOff(index + 1, () => 1),
        longest * 1000,
      )
      t.equal(
        backOff(index + 1, () => 0),
        longest * 500,
      )
    }
    for (const failures of [100, 1e6, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]) {
      t.equal(
        backOff(failures, () => 1),
        600_000,
      )
    }
  },
)
