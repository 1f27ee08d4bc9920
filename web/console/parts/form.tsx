import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Result } from '../../../operations/operations.ts'
import { institutions } from '../names.ts'
import { commandPatienceMs, operate } from '../operate.ts'
import type { OperationName } from '../operations.ts'
import { Said } from './action.tsx'

/** Texts typed into a form, by field name. The texts can outlive the form. */
export type Typed = Signal<Readonly<Record<string, string>>>

/** A form for the arguments of a command. After a failure, the form shows why and keeps the texts. */
export function CommandForm<Name extends OperationName>(props: {
  name: Name
  title: string
  label: string
  typed: Typed
  args: (typed: Readonly<Record<string, string>>) => Record<string, unknown>
  /** What is wrong with the texts, if the browser does not see it. */
  wrong?: (typed: Readonly<Record<string, string>>) => string | undefined
  done: (result: Result<Name>) => void
  cancelled?: () => void
  /** How long to wait for the answer, milliseconds, if not as long as usual. */
  patienceMs?: number
  children: ComponentChildren
}) {
  const { name, typed, args, done, patienceMs = commandPatienceMs } = props
  const isBusy = useSignal(false)
  const problem = useSignal<string | undefined>(undefined)
  const form = useRef<HTMLFormElement>(null)
  // With `cancelled`, a button has opened this form. The button may be far down, so the form scrolls into view.
  useLayoutEffect(() => {
    if (!props.cancelled) return
    const opener = document.activeElement
    form.current?.scrollIntoView({ block: 'nearest' })
    form.current?.querySelector<HTMLElement>('input, select, textarea')?.focus()
    return () => {
      const hadFocus = form.current?.contains(document.activeElement)
      if (hadFocus && opener instanceof HTMLElement) opener.focus()
    }
  }, [])

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    if (isBusy.value) return
    problem.value = props.wrong?.(typed.value)
    if (problem.value !== undefined) return
    isBusy.value = true
    const operated = await operate(name, args(typed.value), { patienceMs })
    isBusy.value = false
    if ('problem' in operated) {
      problem.value = operated.problem
      return
    }
    done(operated.result)
  }

  return (
    <form ref={form} class="panel command" onSubmit={submit} aria-label={props.title}>
      <h2>{props.title}</h2>
      <div class="fields">{props.children}</div>
      <div class="buttons">
        <button type="submit" class="strong" aria-disabled={isBusy.value}>
          {props.label}
        </button>
        {props.cancelled && (
          <button type="button" onClick={props.cancelled}>
            Cancel
          </button>
        )}
        <Said answer={problem.value === undefined ? undefined : { text: problem.value, isProblem: true }} />
      </div>
    </form>
  )
}

interface FieldParts {
  typed: Typed
  name: string
  label: string
  hint?: string
}

/** A field for a line of text. */
export function Field(
  props: FieldParts & {
    isRequired?: boolean
    placeholder?: string
    maxLength?: number
    list?: string
  },
) {
  const { typed, name } = props
  return (
    <label class="field">
      <span>{props.label}</span>
      <input
        name={name}
        type="text"
        value={typed.value[name] ?? ''}
        required={props.isRequired ?? false}
        placeholder={props.placeholder ?? ''}
        maxLength={props.maxLength ?? 2_000}
        autocomplete="off"
        list={props.list}
        spellcheck={false}
        onInput={({ currentTarget }) => set(typed, name, currentTarget.value)}
      />
      {props.hint && <small>{props.hint}</small>}
    </label>
  )
}

/** A field for the URN of an institution, with URNs and names as suggestions. */
export function InstitutionField(props: FieldParts & { isRequired?: boolean }) {
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
export function Moment({ typed, name, label, hint, isRequired }: FieldParts & { isRequired?: boolean }) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="datetime-local"
        name={name}
        value={typed.value[name] ?? ''}
        required={isRequired ?? false}
        onInput={({ currentTarget }) => set(typed, name, currentTarget.value)}
      />
      {hint && <small>{hint}</small>}
    </label>
  )
}

/** A field for several lines. */
export function Lines(props: FieldParts & { rows?: number; isRequired?: boolean }) {
  const { typed, name } = props
  return (
    <label class="field wide">
      <span>{props.label}</span>
      <textarea
        name={name}
        rows={props.rows ?? 3}
        value={typed.value[name] ?? ''}
        required={props.isRequired ?? false}
        spellcheck={false}
        onInput={({ currentTarget }) => set(typed, name, currentTarget.value)}
      />
      {props.hint && <small>{props.hint}</small>}
    </label>
  )
}

/** A field with choices, shown by their `words`. */
export function Choice(
  props: FieldParts & { choices: readonly (readonly [value: string, words: string])[] },
) {
  const { typed, name } = props
  return (
    <label class="field">
      <span>{props.label}</span>
      <select
        name={name}
        value={typed.value[name] ?? props.choices[0]?.[0] ?? ''}
        onChange={({ currentTarget }) => set(typed, name, currentTarget.value)}
      >
        {props.choices.map(([value, words]) => (
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

function set(typed: Typed, name: string, value: string): void {
  typed.value = { ...typed.value, [name]: value }
}

/** The parts of a field between line ends and commas, without empty ones. */
export function listOf(text: string | undefined): string[] {
  return (text ?? '')
    .split(/[\n,]/)
    .map((one) => one.trim())
    .filter(Boolean)
}
