import t from 'tap'
import { instantOf, passedInstantOf } from '../../../cli/time/instant.ts'
import { words } from '../../words.ts'

/** In this time zone, clocks go forward at 2:00 on 29 March 2026. */
process.env.TZ = 'Europe/Berlin'
const now = new Date('2026-03-29T18:30:15.250+02:00')

t.test('times as people type them', async (t) => {
  for (const [typed, instant] of [
    ['today', '2026-03-28T23:00:00.000Z'],
    ['2026-03-29', '2026-03-28T23:00:00.000Z'],
    ['2026-03-30', '2026-03-29T22:00:00.000Z'],
    ['2024-02-29', '2024-02-28T23:00:00.000Z'],
    ['18:02', '2026-03-29T16:02:00.000Z'],
    ['00:00', '2026-03-28T23:00:00.000Z'],
    ['23:59', '2026-03-29T21:59:00.000Z'],
    ['90s', '2026-03-29T16:28:45.250Z'],
    ['1d', '2026-03-28T16:30:15.250Z'],
    ['999999999d', '1970-01-01T00:00:00.000Z'],
    ['2026-03-01T18:02Z', '2026-03-01T18:02Z'],
    ['2026-03-01T18:02:00,5+01:00', '2026-03-01T18:02:00,5+01:00'],
  ] as const) {
    t.equal(instantOf('--since', typed, now), instant, typed)
  }
})

t.test('what is none of them is refused by its option', async (t) => {
  const wrong = [
    '',
    ...words(`
      yesterday 24:00 8:02 18:60 18:02:00 2026-02-30 2026-13-01 26-03-01
    `),
  ]
  for (const typed of [...wrong, '2026-03-01T18:02', 'today ', '1785672000000', '2h30m']) {
    t.throws(() => instantOf('--before', typed, now), { message: `--before "${typed}" is no time` }, typed)
  }
})

t.test('some must have passed', async (t) => {
  t.equal(passedInstantOf('--since', '18:30', now), '2026-03-29T16:30:00.000Z')
  for (const typed of ['18:31', '2026-03-30', '2026-03-29T18:31:00+02:00']) {
    t.throws(
      () => passedInstantOf('--since', typed, now),
      { message: /^--since ".*" has not come yet/ },
      typed,
    )
  }
})
