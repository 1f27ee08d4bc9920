import { signal, useSignal } from '@preact/signals'
import { eventKinds } from '../../../client/events.ts'
import type { Checked } from '../../../operations/events.ts'
import type { CommandResult } from '../commands.ts'
import { Choice, CommandForm, InstitutionField, Lines, type Typed } from '../parts/form.tsx'
import { Head } from '../parts/shown.tsx'
import { Errors } from './errors.tsx'
import { Outcome } from './outcome.tsx'

const typed: Typed = signal({})
const typedByOwner: Typed = signal({})
/** The classes of events, to which inbox topics can be limited. */
const eventClasses = [...new Set(Object.values(eventKinds).map((row) => row.class))]
const inboxes = [
  ['', 'the inbox of all classes'],
  ...eventClasses.map((cls) => [cls, `the inbox of ${cls}`] as const),
] as const

/** Shows what would become of an event, and why. Nothing is published. */
export function DryRun() {
  const checked = useSignal<Checked | undefined>(undefined)
  return (
    <details class="more-of">
      <summary>Try an event without publishing it</summary>
      <CommandForm
        name="check"
        title="Dry run"
        label="Check"
        typed={typed}
        args={({ institution = '', payload = '', class: cls = '' }) => ({
          institution: institution.trim(),
          payload: base64(payload),
          ...(cls !== '' && { class: cls }),
        })}
        done={(result) => {
          checked.value = result
        }}
      >
        <InstitutionField typed={typed} name="institution" label="Institution" isRequired />
        <Choice typed={typed} name="class" label="Sent to" choices={inboxes} />
        <Lines typed={typed} name="payload" label="Event (JSON)" rows={8} />
      </CommandForm>
      <Judged checked={checked.value} />
    </details>
  )
}

/** The dry run of users of an institution, with what mends the event. */
export function OwnCheck() {
  const checked = useSignal<CommandResult<'institution.check'> | undefined>(undefined)
  return (
    <>
      <Head title="Dry run" />
      <p class="muted">
        Paste an event as your playout sends it over MQTT. The hub judges it as if it came now. Nothing is
        published.
      </p>
      <CommandForm
        name="institution.check"
        title="An event"
        label="Check"
        typed={typedByOwner}
        args={({ event = '', class: cls = '' }) => ({ event, ...(cls !== '' && { class: cls }) })}
        done={(result) => {
          checked.value = result
        }}
      >
        <Choice typed={typedByOwner} name="class" label="Sent to" choices={inboxes} />
        <Lines typed={typedByOwner} name="event" label="Event (JSON)" rows={14} isRequired />
      </CommandForm>
      <Judged checked={checked.value} />
    </>
  )
}

/** What would become of the event. */
function Judged({ checked }: { checked: Checked | CommandResult<'institution.check'> | undefined }) {
  if (!checked) return null
  const { outcome, errors, warnings = [], topics } = checked
  return (
    <div class="panel" role="status">
      <Outcome row={{ outcome, errors, dryRun: true }} />
      {outcome === 'published' && topics.length > 0 && (
        <ul aria-label="Topics">
          {topics.map((topic) => (
            <li key={topic} class="id">
              {topic}
            </li>
          ))}
        </ul>
      )}
      <Errors errors={errors} />
      <Errors errors={warnings} of="Warnings" />
    </div>
  )
}

function base64(text: string): string {
  const bytes = new TextEncoder().encode(text)
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}
