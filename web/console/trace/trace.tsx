import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { go, query } from '../../page/location.ts'
import { searchText } from '../../page/search-text.ts'
import { institutions, livestreams } from '../livestream-names.ts'
import { operate } from '../operate.ts'
import { Choice, Field, Moment } from '../parts/form.tsx'
import { Head } from '../parts/shown.tsx'
import { hasNamesFor, looked, searchArgs, searchAt, searchOf, tailArgs, tailAt } from './asked.ts'
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

const namesList = 'trace-names'

/** The typing counts as paused this long after the last letter, milliseconds. */
const pauseMs = 600

/** The live tail of events, and the search for past ones. */
export function Trace() {
  /** Number of searches so far: a new number searches the same terms again. */
  const nth = useSignal(0)
  /** The terms that were submitted and are not shown yet. Undefined: none are. */
  const pending = useSignal<typeof looked.value | undefined>(undefined)
  useEffect(
    () => () => {
      pending.value = undefined
    },
    [],
  )
  const searched = searchOf(query.value)
  /** The terms of the tail, taken from the fields when the typing pauses. */
  const settled = useSignal(looked.value)
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = looked.value
    }, pauseMs)
    return () => clearTimeout(timer)
  }, [looked.value])

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const typed = looked.value
    if (pending.value === typed) return
    pending.value = typed
    const before = query.value
    const { item = '', ...others } = typed
    const name = item.trim()
    const isAlone = Object.values(others).every((text) => text.trim() === '')
    const mayBeId = name !== '' && name.length <= 500 && isAlone
    const shown = mayBeId ? await operate('events.show', { id: name }) : undefined
    // A newer submission, or another view, takes the place of this one.
    if (pending.value !== typed) return
    pending.value = undefined
    if (query.value !== before) return
    nth.value++
    // The node reads a short number as a position. The person may mean a playlistItemId that looks the same. So the
    // event is shown at once only if its id is `name`.
    const isId = shown !== undefined && 'result' in shown && shown.result.id === name
    if (isId) return go(`/console/trace/${encodeURIComponent(name)}`)
    go(searchAt(typed))
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
            hint="Its name, id, external id or acronym"
            list={namesList}
          />
          <Names />
          <Choice typed={looked} name="outcome" label="Outcome" choices={outcomes} />
          <Moment typed={looked} name="since" label="Since" hint="Your local time; only for the search" />
          <Moment typed={looked} name="before" label="Before" hint="Your local time" />
        </div>
        <div class="buttons">
          <button type="submit" class="strong" aria-disabled={pending.value === looked.value}>
            Search
          </button>
          <button type="button" aria-pressed={searched === undefined} onClick={() => go(tailAt)}>
            Live tail
          </button>
        </div>
      </form>
      {searched?.item && <AtPosition name={searched.item.trim()} />}
      {!hasNamesFor(searched ?? settled.value) ? (
        <p class="panel muted" role="status">
          Loading the livestreams…
        </p>
      ) : searched ? (
        <Search args={searchArgs(searched)} nth={nth.value} />
      ) : (
        <Tail args={tailArgs(settled.value)} />
      )}
      <DryRun />
    </>
  )
}

/** Number of suggestions: a browser takes more than a second for 20,000. */
const mostNames = 100

/** The names of institutions and livestreams that fit what is typed, as suggestions. */
function Names() {
  const typed = searchText(looked.value.whose?.trim() ?? '')
  const titles = new Set<string>()
  for (const title of titlesOf(institutions.value, livestreams.value ?? [])) {
    if (titles.size === mostNames) break
    if (searchText(title).includes(typed)) titles.add(title)
  }
  return (
    <datalist id={namesList}>
      {[...titles].map((title) => (
        <option key={title} value={title} />
      ))}
    </datalist>
  )
}

function* titlesOf(
  named: typeof institutions.value,
  listed: readonly { title: string }[],
): Generator<string> {
  for (const [, title] of named) yield title
  for (const { title } of listed) yield title
}

/** A link to the event at position `name`, if there is one. */
function AtPosition({ name }: { name: string }) {
  const isThere = useSignal(false)
  useEffect(() => {
    let isOver = false
    isThere.value = false
    if (/^[0-9]+$/.test(name))
      void operate('events.show', { id: name }).then((answer) => {
        if (!isOver) isThere.value = 'result' in answer && String(answer.result.position) === name
      })
    return () => {
      isOver = true
    }
  }, [name])
  if (!isThere.value) return null
  return (
    <p>
      <a href={`/console/trace/${name}`}>Event at position {name}</a>
    </p>
  )
}
