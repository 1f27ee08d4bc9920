import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { go, query } from '../../page/location.ts'
import { operate } from '../operate.ts'
import { Choice, Field } from '../parts/form.tsx'
import { Head } from '../parts/shown.tsx'
import { argsOf, looked, searchAt, searchOf, tailAt } from './asked.ts'
import { DryRun } from './dry-run.tsx'
import { Search } from './search.tsx'
import { Tail } from './tail.tsx'

const outcomes = [
  ['', 'any outcome'],
  ['refused', 'not published as meant'],
  ['published', 'published'],
  ['blocked', 'blocked'],
  ['invalid', 'invalid'],
  ['failed', 'failed'],
  ['dry-run', 'dry run'],
] as const

/** The live tail of events, and the search for past ones. */
export function Trace() {
  const isBusy = useSignal(false)
  /** Number of searches that were sent off: the same terms search again. */
  const nth = useSignal(0)
  const isLeft = useRef(false)
  useEffect(
    () => () => {
      isLeft.current = true
    },
    [],
  )
  const searched = searchOf(query.value)

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const name = (looked.value.item ?? '').trim()
    isBusy.value = true
    // The typed text may be the id of an event as well as of an item.
    const shown = name === '' || name.length > 500 ? undefined : await operate('events.show', { id: name })
    isBusy.value = false
    // The person has gone to another view meanwhile.
    if (isLeft.current) return
    nth.value++
    if (shown && 'result' in shown) return go(`/console/trace/${encodeURIComponent(name)}`)
    go(searchAt(looked.value))
  }

  return (
    <>
      <Head title="Trace" />
      <form class="panel search-form" onSubmit={submit} aria-label="Search events">
        <div class="fields">
          <Field
            typed={looked}
            name="item"
            label="playlistItemId, event id or position"
            placeholder="What became of …"
          />
          <Field
            typed={looked}
            name="whose"
            label="Livestream or institution"
            hint="Its name, id or external id"
          />
          <Choice typed={looked} name="outcome" label="Outcome" choices={outcomes} />
        </div>
        <div class="buttons">
          <button type="submit" class="strong" disabled={isBusy.value}>
            Search
          </button>
          <button type="button" aria-pressed={searched === undefined} onClick={() => go(tailAt)}>
            Live tail
          </button>
        </div>
      </form>
      {searched ? <Search args={argsOf(searched)} nth={nth.value} /> : <Tail args={argsOf(looked.value)} />}
      <DryRun />
    </>
  )
}
