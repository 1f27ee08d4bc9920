import type { Livestream } from '../answers.ts'
import { livestreams, livestreamsProblem } from '../names.ts'
import { Head, Problem, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount } from '../words.ts'

const everyMs = 10_000

/** All livestreams and institutions of the feed. */
export function Livestreams() {
  const all = livestreams.value
  const institutions = new Set(all?.map(({ institution }) => institution.id))
  return (
    <>
      <Head title="Livestreams">
        {all && (
          <p class="muted">
            {amount(all.length, 'livestream')} of {amount(institutions.size, 'institution')}
          </p>
        )}
      </Head>
      <Problem text={livestreamsProblem.value} />
      <section class="panel">
        <LivestreamTable rows={all} empty="The livestream feed is empty." />
      </section>
    </>
  )
}

/** Livestreams, found by any of their names and ids. */
export function LivestreamTable({ rows, empty }: { rows: readonly Livestream[] | undefined; empty: string }) {
  const newest = useCommandAnswer('events.newest', {}, everyMs)
  const times = new Map(newest.value.value?.map(({ livestream, eventTime }) => [livestream.id, eventTime]))
  return (
    <Table
      caption="Livestreams"
      rows={rows}
      keyOf={({ id }) => id}
      textOf={({ id, externalId, title, publisher, institution }) =>
        [
          id,
          externalId,
          title,
          publisher.title,
          publisher.id,
          institution.id,
          institution.title,
          institution.acronym,
        ].join(' ')
      }
      empty={empty}
      columns={[
        {
          title: 'Livestream',
          cell: ({ id, title }) => (
            <a href={`/console/livestreams/${encodeURIComponent(id)}`} class="what" dir="auto">
              {title}
            </a>
          ),
        },
        {
          title: 'Institution',
          cell: ({ institution }) => (
            <a href={`/console/institutions/${encodeURIComponent(institution.id)}`} dir="auto">
              {institution.title}
            </a>
          ),
        },
        {
          title: 'Last event',
          cell: ({ id }) => {
            const at = times.get(id)
            if (at) return <When at={at} />
            return <span class="muted">{at === null ? 'none' : ''}</span>
          },
        },
        { title: 'External id', cell: ({ externalId }) => <span class="id">{externalId}</span> },
        { title: 'Id', cell: ({ id }) => <span class="id">{id}</span> },
      ]}
    />
  )
}
