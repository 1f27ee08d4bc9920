import { signal, useSignal } from '@preact/signals'
import { eventKinds } from '../../../client/events.ts'
import type { Checked } from '../../../operations/events.ts'
import { Choice, CommandForm, InstitutionField, Lines, type Typed } from '../parts/form.tsx'
import { Errors } from './errors.tsx'
import { Outcome } from './outcome.tsx'

const typed: Typed = signal({})
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
      {checked.value && (
        <div class="panel" role="status">
          <Outcome
            row={{ outcome: checked.value.outcome, errors: checked.value.errors ?? [], dryRun: true }}
          />
          <Errors errors={checked.value.errors ?? []} />
          <Errors errors={checked.value.warnings ?? []} of="Warnings" />
        </div>
      )}
    </details>
  )
}

function base64(text: string): string {
  const bytes = new TextEncoder().encode(text)
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}
