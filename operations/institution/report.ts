import { boolean, instant, integer, orNull, string, stringOrNull } from '../../event/answer-fields.ts'
import { remedyOf } from '../../event/remedy.ts'
import { Type } from '../../event/type.ts'
import { readWeek, weekBeside, weekOf, weekPattern } from '../../event/week.ts'
import { inTurns } from '../../telemetry/turns.ts'
import { refusal } from '../errors.ts'
import type { Of } from '../operation.ts'
import type { Own } from './own.ts'
import { type OwnOperation, shows } from './row.ts'

/** The argument that names a week. */
export const week = Type.Optional(
  Type.String({
    pattern: weekPattern,
    maxLength: 8,
    description: 'a week such as 2026-W48, from Monday by UTC; without it, the last whole one',
  }),
)

const sums = {
  events: Type.Integer({ description: 'published, without repetitions' }),
  elements: Type.Integer({ description: 'that began to play' }),
  late: Type.Integer({ description: 'elements whose event came more than 30 s after their start' }),
  music: Type.Integer({ description: 'elements of the type music' }),
  withoutIsrc: Type.Integer({ description: 'of the music' }),
  withoutArtist: Type.Integer({ description: 'of the music' }),
  withoutCover: Type.Integer({ description: 'of the music; a fallback is no cover' }),
  announced: Type.Integer({ description: 'elements before which a `next` came' }),
  cameTrue: Type.Integer({ description: 'of these, those that were the announced one' }),
  gaps: Type.Integer({
    description: 'an element should have ended more than 10 minutes before the next one',
  }),
  gapMinutes: Type.Integer({ description: 'minutes of all gaps' }),
}

const livestream = Type.Object({
  livestreamId: string,
  title: stringOrNull,
  silentSince: orNull(instant, 'silent until now, and before the end of the week; null: it is not'),
  ...sums,
  longestGaps: Type.Array(Type.Object({ from: instant, minutes: integer })),
})

export const report = Type.Object({
  institutionId: string,
  week: string,
  from: instant,
  to: instant,
  isOver: boolean,
  ...sums,
  refused: Type.Integer({ description: 'events that were refused, wholly or for some livestreams' }),
  refusals: Type.Array(
    Type.Object({
      errorCode: string,
      events: integer,
      remedy: orNull(string, 'what mends it'),
    }),
  ),
  livestreams: Type.Array(livestream),
})

export type WeeklyReport = Of<typeof report>
type WeekSums = Pick<WeeklyReport, keyof typeof sums>

export const ownReport = {
  'report.show': shows(
    'what became of the events of a week: how many were refused and why, were late, or lacked something',
    {
      permission: 'publish',
      at: 'GET /institution/report',
      args: { week },
      example: { week: '2026-W48' },
      console: { view: 'own-report', title: 'Weekly report' },
      result: report,
      check: ({ week }) => whyNoWeek(week),
      run: (own, { week }) => reportOf(own, week),
    },
  ),
} satisfies Record<string, OwnOperation>

/** What is wrong with the name of a week. Undefined: nothing. */
export function whyNoWeek(name: string | undefined): string | undefined {
  if (name === undefined || readWeek(name)) return undefined
  return `week must be a week that there is: ${name.slice(0, 4)} has 52`
}

/** The report of an institution about a week, by default about the last whole one. */
export async function reportOf(own: Own, name: string | undefined): Promise<WeeklyReport> {
  const now = weekOf(Date.now())
  const week = (name === undefined ? undefined : readWeek(name)) ?? weekBeside(now, -1)
  if (week.from > now.from) throw refusal(`the week ${week.name} has not begun`)
  const counted = await own.counted(week)
  if (!counted) throw refusal(`the hub no longer knows the week ${week.name}`)
  const { livestreams: counts, refusals } = counted
  const known = new Map((await own.livestreams.all()).map((one) => [one.id, one]))
  const ids = new Set([...known.keys(), ...counts.keys()])
  const livestreams = await inTurns(ids, (id) => {
    const one = known.get(id)
    const { sums = noSums, longest = [] } = counts.get(id) ?? {}
    const silentSince = one ? own.livestreams.silentSince(one) : null
    return {
      livestreamId: id,
      title: one?.title ?? null,
      silentSince: silentSince !== null && Date.parse(silentSince) < week.to ? silentSince : null,
      ...sums,
      longestGaps: longest.map(({ from, minutes }) => ({ from: new Date(from).toISOString(), minutes })),
    }
  })
  return {
    institutionId: own.institutionId,
    week: week.name,
    from: new Date(week.from).toISOString(),
    to: new Date(week.to).toISOString(),
    isOver: week.to <= now.from,
    ...sumOf(livestreams),
    refused: refusals.events,
    refusals: Object.entries(refusals.codes)
      .map(([errorCode, events]) => ({ errorCode, events, remedy: remedyOf(errorCode) }))
      .sort((a, b) => b.events - a.events),
    livestreams: livestreams.sort(byNeed),
  }
}

const names = Object.keys(sums) as (keyof WeekSums)[]
const noSums = Object.fromEntries(names.map((name) => [name, 0])) as WeekSums

function sumOf(livestreams: readonly WeekSums[]): WeekSums {
  const total = { ...noSums } as { -readonly [Name in keyof WeekSums]: number }
  for (const one of livestreams) for (const name of names) total[name] += one[name]
  return total
}

type LivestreamSums = WeeklyReport['livestreams'][number]

/** Those that need a look first: silent ones, then those with the longest gaps. */
function byNeed(a: LivestreamSums, b: LivestreamSums): number {
  if ((a.silentSince === null) !== (b.silentSince === null)) return a.silentSince === null ? 1 : -1
  if (a.gapMinutes !== b.gapMinutes) return b.gapMinutes - a.gapMinutes
  return (a.title ?? a.livestreamId).localeCompare(b.title ?? b.livestreamId)
}
