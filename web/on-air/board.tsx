import { signal } from '@preact/signals'
import { Card } from './card.tsx'
import { announcing, connection, isListed, listProblem, livestreams } from './livestreams.ts'
import { type Group, groups, isAnnouncingOnly, search } from './search.ts'

/** Number of cards at first. Each click on the button adds as many: 20,000 would stop a browser for seconds. */
const cardsAtOnce = 500
/** How many cards are shown. It outlives the board. */
const limit = signal(cardsAtOnce)

/** The livestreams that match the search and the filter, grouped by institution. */
export function Board() {
  const shown = groups.value
  const left = shown.reduce((sum, { livestreams: own }) => sum + own.length, -limit.value)
  const isLoading = !isListed.value && (listProblem.value === '' || livestreams.value.size === 0)
  return (
    <div class="board" data-stale={connection.value.state === 'lost'}>
      <h1 class="unseen">What is on air</h1>
      <Announcing />
      {isLoading && <Skeleton />}
      {!isLoading && shown.length === 0 && <Nothing />}
      {!isLoading &&
        [...firstOf(shown, limit.value)].map(({ institution, livestreams: own, first }) => (
          <section key={institution.id} aria-labelledby={`institution-${institution.id}`}>
            <h2 id={`institution-${institution.id}`}>
              <span dir="auto">{institution.title}</span>
              <small dir="auto">{institution.acronym}</small>
              <small>{own.length === 1 ? '1 livestream' : `${own.length} livestreams`}</small>
            </h2>
            <ul class="cards">
              {first.map((livestream) => (
                <Card key={livestream.id} livestream={livestream} />
              ))}
            </ul>
          </section>
        ))}
      {!isLoading && left > 0 && (
        <button
          type="button"
          onClick={() => {
            limit.value += cardsAtOnce
          }}
        >
          Show more ({left} left)
        </button>
      )}
    </div>
  )
}

/** The groups, each with its first livestreams: together at most `most`. */
function* firstOf(all: readonly Group[], most: number): Generator<Group & { first: Group['livestreams'] }> {
  for (const group of all) {
    if (most <= 0) return
    yield { ...group, first: group.livestreams.slice(0, most) }
    most -= group.livestreams.length
  }
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
