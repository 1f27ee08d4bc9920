import { signal } from '@preact/signals'
import { weekBeside, weekOf } from '../../../event/week.ts'
import type { WeeklyReport } from '../../../operations/institution/report.ts'
import { now } from '../../page/clock.ts'
import { set, type Typed } from '../parts/form.tsx'
import { Facts, Head, None, Problem, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { Named } from '../parts/value.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount, count, dateAndTime } from '../words.ts'

const chosen: Typed = signal({})
/** Weeks to choose from, that of now included: the hub keeps no more. */
const weeks = 13
const everyMs = 60_000

type ReportSums = WeeklyReport | WeeklyReport['livestreams'][number]

/** What became of the events of a week. */
export function OwnReport() {
  const current = weekOf(now())
  const names = Array.from({ length: weeks }, (_, ago) => weekBeside(current, -ago).name)
  const week = chosen.value.week ?? names[1] ?? current.name
  const { value, problem } = useCommandAnswer('institution.report.show', { week }, everyMs)
  const report = value.value
  return (
    <>
      <Head title="Weekly report" />
      <div class="bar">
        <select
          aria-label="Week"
          value={week}
          onChange={({ currentTarget }) => set(chosen, 'week', currentTarget.value)}
        >
          {names.map((name, ago) => (
            <option key={name} value={name}>
              {name}
              {ago === 0 ? ', not over yet' : ''}
            </option>
          ))}
        </select>
      </div>
      <Problem text={problem.value} />
      {report ? <Shown of={report} /> : !problem.value && <p class="loading">Loading…</p>}
    </>
  )
}

function Shown({ of: report }: { of: WeeklyReport }) {
  return (
    <>
      <section class="panel">
        <h2>All livestreams</h2>
        <Facts
          of={[
            ['From', dateAndTime(report.from)],
            ['To', dateAndTime(report.to)],
            ['Events', count(report.events)],
            ['Refused', count(report.refused)],
            ['Elements that played', count(report.elements)],
            ['Late by more than 30 s', share(report.late, report.elements)],
            ['Music', count(report.music)],
            ['Without ISRC', share(report.withoutIsrc, report.music)],
            ['Without artist', share(report.withoutArtist, report.music)],
            ['Without cover', share(report.withoutCover, report.music)],
            ['Gaps of more than 10 minutes', gapsOf(report)],
            ['Next came true', trueOf(report)],
          ]}
        />
      </section>
      <section class="panel">
        <h2>Why events were refused</h2>
        <Table
          caption="Errors of refused events"
          rows={report.refusals}
          keyOf={({ errorCode }) => errorCode}
          empty={report.events === 0 ? 'No event came.' : 'No event was refused.'}
          columns={[
            { title: 'Events', cell: ({ events }) => count(events), isNumber: true },
            { title: 'Error', cell: ({ errorCode }) => <code>{errorCode}</code> },
            { title: 'What mends it', cell: ({ remedy }) => remedy ?? <None /> },
          ]}
        />
      </section>
      <section class="panel">
        <h2>Each livestream</h2>
        <Table
          caption="Livestreams, those that need a look first"
          rows={report.livestreams}
          keyOf={({ livestreamId }) => livestreamId}
          textOf={({ livestreamId, title }) => `${livestreamId} ${title}`}
          empty="Your institution has no livestream."
          columns={[
            {
              title: 'Livestream',
              cell: ({ livestreamId, title }) => (
                <Named view="own-livestreams" id={livestreamId} name={title ?? livestreamId} />
              ),
            },
            { title: 'Events', cell: ({ events }) => count(events), isNumber: true },
            { title: 'Elements', cell: ({ elements }) => count(elements), isNumber: true },
            { title: 'Late', cell: ({ late, elements }) => share(late, elements), isNumber: true },
            { title: 'No ISRC', cell: (row) => share(row.withoutIsrc, row.music), isNumber: true },
            { title: 'No artist', cell: (row) => share(row.withoutArtist, row.music), isNumber: true },
            { title: 'No cover', cell: (row) => share(row.withoutCover, row.music), isNumber: true },
            { title: 'Gaps', cell: (row) => <Gaps of={row} /> },
            { title: 'Next came true', cell: trueOf, isNumber: true },
            { title: 'Silent since', cell: ({ silentSince }) => <When at={silentSince} /> },
          ]}
        />
      </section>
    </>
  )
}

/** The gaps of a livestream, with the longest of them. */
function Gaps({ of }: { of: WeeklyReport['livestreams'][number] }) {
  if (of.gaps === 0) return <None />
  return (
    <>
      {gapsOf(of)}
      {of.longestGaps.map(({ from, minutes }) => (
        <small key={from} class="below">
          {dateAndTime(from)}: {amount(minutes, 'minute')}
        </small>
      ))}
    </>
  )
}

function gapsOf({ gaps, gapMinutes }: ReportSums): string {
  return gaps === 0 ? '0' : `${count(gaps)}, ${amount(gapMinutes, 'minute')}`
}

function trueOf({ announced, cameTrue }: ReportSums): string {
  return announced === 0 ? '–' : `${share(cameTrue, announced)} of ${count(announced)}`
}

function share(part: number, of: number): string {
  return part === 0 || of === 0 ? count(part) : `${count(part)} (${Math.round((100 * part) / of)} %)`
}
