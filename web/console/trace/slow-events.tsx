import { Problem } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { Named } from '../parts/value.tsx'
import { useCommandAnswer } from '../poll.ts'
import { clockTime, kindOf, ms } from '../words.ts'
import { StagesBar } from './stages-bar.tsx'

/** The slowest events of the last hour. */
export function SlowEvents() {
  const { value, problem } = useCommandAnswer('events.slow', {}, 30_000)
  return (
    <section class="panel">
      <h2>Slowest events of the last hour</h2>
      <Problem text={problem.value} />
      <Table
        caption="Slowest events of the last hour"
        rows={value.value}
        atOnce={5}
        keyOf={({ id, node }) => `${id} ${node}`}
        empty="No event was published in the last hour, or since the node was started."
        columns={[
          { title: 'Written', isNumber: true, cell: ({ written }) => ms(written) },
          { title: 'Stages', cell: (event) => <StagesBar stages={event} isSmall /> },
          { title: 'At', cell: ({ at }) => clockTime(at) },
          { title: 'Event', cell: ({ event }) => kindOf(event) },
          { title: 'Node', cell: ({ node }) => node },
          {
            title: 'Id',
            cell: ({ id }) => <Named view="trace" id={id} />,
          },
        ]}
      />
    </section>
  )
}
