import type { NewestEvent } from '../../../operations/events.ts'
import type { Livestream } from '../../../operations/feed.ts'
import { institutionName, livestreams, livestreamsProblem } from '../livestream-names.ts'
import { Head, Problem, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { Named } from '../parts/value.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount, shortId } from '../words.ts'

const everyMs = 10_000

/** All livestreams of the feed, and others with retained events. */
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
        <LivestreamTable empty="The livestream feed is empty." />
      </section>
    </>
  )
}

/** The livestreams of an institution, or all, found by any of their names and ids. */
export function LivestreamTable({ institution, empty }: { institution?: string; empty: string }) {
  const newest = useCommandAnswer('events.newest', institution === undefined ? {} : { institution }, everyMs)
  const times = new Map(newest.value.value?.map(({ livestream, at }) => [livestream.id, at]))
  const all = livestreams.value
  const listed = new Set(all?.map(({ id }) => id))
  // The list of the feed may be some minutes older than the answer about events.
  const others =
    newest.value.value?.filter(({ livestream: { id, isListed } }) => !isListed && !listed.has(id)) ?? []
  const rows = all && [
    ...all.filter((one) => institution === undefined || one.institution.id === institution),
    ...others.map(unlisted),
  ]
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
            <>
              <Named view="livestreams" id={id} name={title} class="what" />
              {!listed.has(id) && <small class="below">not in the livestream feed</small>}
            </>
          ),
        },
        {
          title: 'Institution',
          cell: ({ institution: { id, title } }) =>
            id !== '' && <Named view="institutions" id={id} name={title} />,
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

/** The row of a livestream that has retained events, and that the feed does not list. */
function unlisted({ livestream, institution }: NewestEvent): Livestream {
  const { id, externalId, title } = livestream
  const owner = institution.id ?? ''
  return {
    id,
    externalId: externalId ?? '',
    title: title ?? shortId(id),
    type: '',
    publisher: { id: '', externalId: '', title: '' },
    institution: { id: owner, title: institution.title ?? (owner && institutionName(owner)), acronym: '' },
  }
}
