import { useSignal } from '@preact/signals'
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
              label="Read it, also if it shrank by more than 20 %"
              done={done}
            />
          </div>
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
