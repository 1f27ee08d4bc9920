import { useSignal } from '@preact/signals'
import type { FeedDiff, FeedPart } from '../../../operations/feed.ts'
import { refreshNames } from '../names.ts'
import { Action } from '../parts/action.tsx'
import { Badge, Facts, Head, Problem, When } from '../parts/shown.tsx'
import { useCommandAnswer } from '../poll.ts'
import { count } from '../words.ts'

/** The livestream feed in use. */
export function Feed() {
  const { value, problem, refresh } = useCommandAnswer('feed.status', {}, 5_000)
  const outcome = useSignal<{ itemsBefore: number; items: number; problem: string | null } | undefined>(
    undefined,
  )
  const diff = useSignal<FeedDiff | undefined>(undefined)
  const feed = value.value
  const done = (result: { itemsBefore: number; items: number; problem: string | null }) => {
    outcome.value = result
    refresh()
    refreshNames()
  }
  return (
    <>
      <Head title="Feed">
        {feed && <Badge tone={feed.ok ? 'good' : 'bad'}>{feed.ok ? 'well' : 'not well'}</Badge>}
      </Head>
      <Problem text={problem.value} />
      {feed && (
        <section class="panel">
          <Problem text={feed.problem ?? undefined} />
          <Facts
            of={[
              ['Livestreams', count(feed.items)],
              ['Source', <span class="id">{feed.source}</span>],
              ['In use is the one from', <span class="id">{feed.loadedFrom}</span>],
              ['Read', <When at={feed.loadedAt} />],
              ['Checked', <When at={feed.checkedAt} />],
            ]}
          />
          <div class="buttons">
            <Action name="feed.refresh" label="Read it now" done={done} isStrong />
            <Action
              name="feed.refresh"
              args={{ force: true }}
              label="Read it, also if a guard holds it back"
              done={done}
            />
            <Action
              name="feed.diff"
              label="Show what would change"
              done={(result) => (diff.value = result)}
            />
          </div>
          {diff.value && <Differences of={diff.value} />}
          <p role="status">
            {outcome.value &&
              (outcome.value.problem === null
                ? `Read: ${count(outcome.value.items)} livestreams, before ${count(outcome.value.itemsBefore)}.`
                : `Not taken: ${outcome.value.problem}`)}
          </p>
        </section>
      )}
      <p>
        <a href="/console/livestreams">All livestreams</a>
      </p>
    </>
  )
}

/** What would change if the feed were read now. */
function Differences({ of }: { of: FeedDiff }) {
  const { added, removed, owners, renamed, retitled } = of.differences ?? {}
  return (
    <section aria-label="What would change">
      <Problem text={of.problem === null ? undefined : `It would be refused: ${of.problem}`} />
      <Facts
        of={[
          ['Livestreams then', of.items === null ? '–' : count(of.items)],
          ['Added', listed(added)],
          ['Removed', listed(removed)],
          ['Other owners', listed(owners)],
          ['Other external ids', listed(renamed)],
          ['Other titles', count(retitled?.count ?? 0)],
        ]}
      />
    </section>
  )
}

/** How many, and the titles of the first of them. */
function listed(part: FeedPart | undefined): string {
  if (!part || part.count === 0) return '0'
  const titles = part.items.slice(0, mostTitles).map(({ id, title }) => title || id)
  return `${count(part.count)}: ${titles.join(', ')}${part.count > titles.length ? ' …' : ''}`
}

const mostTitles = 10
