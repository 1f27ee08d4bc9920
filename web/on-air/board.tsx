import { Card } from './card.tsx'
import { announcing, connection, isListed, listProblem, livestreams } from './livestreams.ts'
import { groups, isAnnouncingOnly, search } from './search.ts'

/** The livestreams that match the search and the filter, grouped by institution. */
export function Board() {
  const shown = groups.value
  const isLoading = !isListed.value && (listProblem.value === '' || livestreams.value.size === 0)
  return (
    <div class="board" data-stale={connection.value.state === 'lost'}>
      <h1 class="unseen">What is on air</h1>
      <Announcing />
      {isLoading && <Skeleton />}
      {!isLoading && shown.length === 0 && <Nothing />}
      {!isLoading &&
        shown.map(({ institution, livestreams: own }) => (
          <section key={institution.id} aria-labelledby={`institution-${institution.id}`}>
            <h2 id={`institution-${institution.id}`}>
              <span dir="auto">{institution.title}</span>
              <small dir="auto">{institution.acronym}</small>
              <small>{own.length === 1 ? '1 livestream' : `${own.length} livestreams`}</small>
            </h2>
            <ul class="cards">
              {own.map((livestream) => (
                <Card key={livestream.id} livestream={livestream} />
              ))}
            </ul>
          </section>
        ))}
    </div>
  )
}

/** The filter for announcements. */
function Announcing() {
  const count = announcing.value.length
  if (count === 0 && !isAnnouncingOnly.value) return null
  return (
    <p class="filters">
      <button
        type="button"
        class="chip"
        aria-pressed={isAnnouncingOnly.value}
        onClick={() => {
          isAnnouncingOnly.value = !isAnnouncingOnly.value
        }}
      >
        {count === 1 ? '1 announcement' : `${count} announcements`}
      </button>
    </p>
  )
}

function Nothing() {
  if (isAnnouncingOnly.value && announcing.value.length === 0)
    return <p class="nothing">No announcement at the moment.</p>
  if (search.value.trim() === '') return <p class="nothing">The livestream feed is empty.</p>
  return (
    <div class="nothing">
      <p>Nothing matches “{search.value.slice(0, 100)}”.</p>
      <button
        type="button"
        onClick={() => {
          search.value = ''
        }}
      >
        Show all
      </button>
    </div>
  )
}

function Skeleton() {
  return (
    <div class="cards skeleton" aria-hidden="true">
      {Array.from({ length: 12 }, (_, index) => (
        <div class="card" key={index} />
      ))}
    </div>
  )
}
