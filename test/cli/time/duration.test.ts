import t from 'tap'
import { parseDuration } from '../../../cli/time/duration.ts'

t.test('durations', async (t) => {
  for (const [text, seconds] of [
    ['90s', 90],
    ['30m', 1800],
    ['24h', 86_400],
    ['7d', 604_800],
    ['0s', undefined],
    ['', undefined],
    ['24', undefined],
    ['h', undefined],
    ['1.5h', undefined],
    ['-1h', undefined],
    ['1 h', undefined],
    ['1w', undefined],
    ['1H', undefined],
    ['1h\n', undefined],
    ['9999999999d', undefined],
  ] as const) {
    t.equal(parseDuration(text), seconds, JSON.stringify(text))
  }
})
