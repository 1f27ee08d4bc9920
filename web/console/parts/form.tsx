import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { CommandName, CommandResult } from '../commands.ts'
import { institutions } from '../livestream-names.ts'
import { commandPatienceMs, operate } from '../operate.ts'
import { Said } from './dialog.tsx'

/** Texts typed into a form, by field name. The texts can outlive the form. */
export type Typed = Signal<Readonly<Record<string, string>>>

/** A form for the arguments of a command. After a failure, the form shows why and keeps the texts. */
export function CommandForm<Name extends CommandName>(props: {
  name: Name
  title: string
  label: string
  typed: Typed
  args: (typed: Readonly<Record<string, string>>) => Record<string, unknown>
  /** What is wrong with the texts, if the browser does not see it. */
  wrong?: (typed: Readonly<Record<string, string>>) => string | undefined
  done: (result: CommandResult<Name>) => void
  /** For a form in a dialog, which has the title. */
  cancelled?: () => void
  isLoss?: boolean
  /** How long to wait for the answer, milliseconds, if not as long as usual. */
  patienceMs?: number
  children: ComponentChildren
}) {
  const { name, title, typed, args, done, cancelled, patienceMs = commandPatienceMs } = props
  const isBusy = useSignal(false)
  const problem = useSignal<string | undefined>(undefined)

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    if (isBusy.value) return
    problem.value = props.wrong?.(typed.value)
    if (problem.value !== undefined) return
    isBusy.value = true
    const operated = await operate(name, args(typed.value), { patienceMs })
    isBusy.value = false
    if ('problem' in operated) problem.value = operated.problem
    else done(operated.result)
  }

  return (
    <form class={cancelled ? 'command' : 'panel command'} onSubmit={submit} aria-label={title}>
      {!cancelled && <h2>{title}</h2>}
      <div class="fields">{props.children}</div>
      <div class="buttons">
        {cancelled && (
          <button type="button" onClick={cancelled}>
            Cancel
          </button>
        )}
        <button type="submit" class={props.isLoss ? 'danger strong' : 'strong'} aria-disabled={isBusy.value}>
          {props.label}
        </button>
        <Said answer={problem.value === undefined ? undefined : { text: problem.value, isProblem: true }} />
      </div>
    </form>
  )
}

/** What every field has: its text is the one of its name. */
export interface FieldParts {
  typed: Typed
  name: string
  label: string
  hint?: string
  isRequired?: boolean
}

/** A field for a line of text. */
export function Field(
  props: FieldParts & { type?: 'text' | 'number'; placeholder?: string; maxLength?: number; list?: string },
) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <input
        {...textOf(props)}
        type={props.type ?? 'text'}
        step="any"
        placeholder={props.placeholder ?? ''}
        maxLength={props.maxLength ?? 2_000}
        autocomplete="off"
        list={props.list}
        spellcheck={false}
      />
      {props.hint && <small>{props.hint}</small>}
    </label>
  )
}

/** A field for the URN of an institution, with URNs and names as suggestions. */
export function InstitutionField(props: FieldParts) {
  const list = `institutions-${props.name}`
  return (
    <>
      <Field {...props} list={list} placeholder="urn:org:institution:…" />
      <datalist id={list}>
        {institutions.value.map(([id, title]) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </datalist>
    </>
  )
}

/** A field for a point in time, by the visitor's clock. `page/instant.ts` reads what was typed. */
export function Moment(props: FieldParts) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <input type="datetime-local" {...textOf(props)} />
      {props.hint && <small>{props.hint}</small>}
    </label>
  )
}

/** A field for several lines. */
export function Lines(props: FieldParts & { rows?: number }) {
  return (
    <label class="field wide">
      <span>{props.label}</span>
      <textarea rows={props.rows ?? 3} spellcheck={false} {...textOf(props)} />
      {props.hint && <small>{props.hint}</small>}
    </label>
  )
}

/** A field with choices, shown by their `words`. */
export function Choice(
  props: FieldParts & { choices: readonly (readonly [value: string, words: string])[] },
) {
  const { typed, name, choices } = props
  return (
    <label class="field">
      <span>{props.label}</span>
      <select
        name={name}
        value={typed.value[name] ?? choices[0]?.[0] ?? ''}
        onChange={({ currentTarget }) => set(typed, name, currentTarget.value)}
      >
        {choices.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      {props.hint && <small>{props.hint}</small>}
    </label>
  )
}

/** A field that is ticked or not. */
export function Tick({ typed, name, label, hint }: FieldParts) {
  return (
    <label class="tick">
      <input
        type="checkbox"
        checked={typed.value[name] === 'yes'}
        onChange={({ currentTarget }) => set(typed, name, currentTarget.checked ? 'yes' : '')}
      />
      <span>
        {label}
        {hint && <small>{hint}</small>}
      </span>
    </label>
  )
}

/** What an element needs to hold a text. */
function textOf({ typed, name, isRequired = false }: FieldParts) {
  return {
    name,
    value: typed.value[name] ?? '',
    required: isRequired,
    onInput: ({ currentTarget }: { currentTarget: { value: string } }) =>
      set(typed, name, currentTarget.value),
  }
}

/** Changes one of the texts. */
export function set(typed: Typed, name: string, value: string): void {
  typed.value = { ...typed.value, [name]: value }
}
