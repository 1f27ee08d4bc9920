import { Head, Problem, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'

/** The view shows this many of the newest entries. */
const most = 1_000

/** The audit log: who changed what, the newest entry first. */
export function Audit() {
  const { value, problem } = useCommandAnswer('audit', { limit: most }, 10_000)
  return (
    <>
      <Head title="Audit log" />
      <Problem text={problem.value} />
      <section class="panel">
        <Table
          caption={`Who changed what, the newest first, at most ${most}`}
          rows={value.value?.toReversed()}
          keyOf={({ at, action, target }) => `${at} ${action} ${target}`}
          textOf={({ who, action, target, detail }) =>
            [who, action, target, JSON.stringify(detail)].join(' ')
          }
          empty="Nothing was changed yet."
          columns={[
            { title: 'When', cell: ({ at }) => <When at={at} /> },
            { title: 'Who', cell: ({ who }) => who },
            { title: 'What', cell: ({ action }) => <span class="id">{action}</span> },
            { title: 'Of', cell: ({ target }) => <span class="id">{target}</span> },
            { title: 'Detail', cell: ({ detail }) => <Detail of={detail} /> },
          ]}
        />
      </section>
    </>
  )
}

/** The details of an entry: names with their values. */
function Detail({ of }: { of: unknown }) {
  if (typeof of !== 'object' || of === null) return <span class="muted">–</span>
  const parts = Object.entries(of).filter(([, value]) => value !== null && String(value) !== '')
  return (
    <small>
      {parts
        .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
        .join(' · ')
        .slice(0, 400)}
    </small>
  )
}
