import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { useFocusOnHeading } from '../../page/focus.ts'
import type { Command, CommandName, CommandResult } from '../commands.ts'
import { withNames } from '../livestream-names.ts'
import { commandPatienceMs, operate } from '../operate.ts'
import { commandNamed, loses } from '../placed.ts'
import { argumentsOf, fieldsOf, whatIsMissing } from './arguments.ts'
import { type ActionResult, Dialog, Said } from './dialog.tsx'
import { ArgumentFields } from './fields.tsx'
import { CommandForm } from './form.tsx'
import { keepAnswer } from './kept-answer.tsx'
import { fits, sentences } from './template.ts'
import { typedFor } from './typed-texts.ts'

/**
 * A button that carries out a command, on a row or on nothing in particular. A dialog asks for the arguments that are
 * not known, and says what is lost.
 */
export function CommandButton<Name extends CommandName>(props: {
  name: Name
  /** What the command acts on. It fills the sentences of the command, and its form. */
  row?: Readonly<Record<string, unknown>>
  /** All arguments. Otherwise a form asks for those that the row does not have. */
  args?: Record<string, unknown>
  /** The label, if it is not the title of the command. */
  label?: string
  /** What the command acts on, in words. */
  about?: string
  isStrong?: boolean
  /** Asks for all arguments, wherever the command has its place. */
  isWhole?: boolean
  /** The text that is shown when the command is done. */
  said?: (result: CommandResult<Name>) => string
  /** Gets the outcome of a button that disappears when the command is done. */
  outcome?: Signal<ActionResult>
  done?: (result: CommandResult<Name>) => void
}) {
  const { name, row = {} } = props
  const element = useRef<HTMLSpanElement>(null)
  useFocusOnHeading(element)
  const isBusy = useSignal(false)
  const isOpen = useSignal(false)
  const own = useSignal<ActionResult>(undefined)
  const outcome = props.outcome ?? own
  const command = commandNamed(name)
  if (!command) return null
  const { by, given = {}, where, title = name, notice } = props.isWhole ? {} : (command.console ?? {})
  if (!fits(row, where)) return null
  const label = props.label ?? title
  const fromRow = Object.entries({ ...(by && { [by]: by }), ...given }).map(
    ([argument, field]) => [argument, row[field]] as const,
  )
  const about = props.about ?? (by && withNames(fromRow.map(([, value]) => String(value)).join(', ')))
  const known = props.args ?? Object.fromEntries(fromRow)
  const fields = props.args ? [] : fieldsOf(command, known, {})
  const mustAsk = loses(command) || fields.length > 0 || sentences(notice, row).length > 0

  const done = (result: CommandResult<Name>) => {
    isOpen.value = false
    if (props.said) outcome.value = { text: props.said(result), isProblem: false }
    keepAnswer(command, result)
    props.done?.(result)
  }

  async function perform(): Promise<void> {
    isBusy.value = true
    outcome.value = undefined
    const operated = await operate(name, known, { patienceMs: commandPatienceMs })
    isBusy.value = false
    if ('problem' in operated) outcome.value = { text: operated.problem, isProblem: true }
    else done(operated.result)
  }

  return (
    <span ref={element} class="action">
      <button
        type="button"
        class={props.isStrong ? 'strong' : loses(command) ? 'danger' : ''}
        aria-label={about && `${label}: ${about}`}
        aria-disabled={isBusy.value}
        onClick={({ detail }) => {
          // The second click of a double click: another button may stand there by now, such as Resume for Pause.
          if (detail > 1) return
          if (mustAsk) isOpen.value = true
          else if (!isBusy.value) void perform()
        }}
      >
        {label}
      </button>
      {isOpen.value && (
        <AskingDialog
          {...{ name, command, known, row, label, done }}
          title={about ? `${label}: ${about}` : label}
          isAsking={!props.args}
          closed={() => {
            isOpen.value = false
          }}
        />
      )}
      {!props.outcome && <Said answer={own.value} />}
    </span>
  )
}

function AskingDialog<Name extends CommandName>(props: {
  name: Name
  command: Command
  known: Record<string, unknown>
  row: Readonly<Record<string, unknown>>
  label: string
  title: string
  isAsking: boolean
  done: (result: CommandResult<Name>) => void
  closed: () => void
}) {
  const { name, command, known, row, title } = props
  const { notice, loss, fields: hints, patienceSeconds } = command.console ?? {}
  const { typed, forget } = typedFor(command, known, row)
  const fields = props.isAsking ? fieldsOf(command, known, typed.value) : []
  const [lossOfSwitch] = fields.flatMap(([field]) => (typed.value[field] ? (hints?.[field]?.loss ?? []) : []))
  return (
    <Dialog title={title} closed={props.closed}>
      <CommandForm
        name={name}
        title={title}
        label={props.label}
        isLoss={loses(command)}
        typed={typed}
        args={(texts) => ({ ...argumentsOf(fields, texts), ...known })}
        wrong={(texts) => whatIsMissing(command, fields, texts)}
        {...(patienceSeconds !== undefined && { patienceMs: patienceSeconds * 1000 })}
        done={(result) => {
          forget()
          props.done(result)
        }}
        cancelled={() => {
          forget()
          props.closed()
        }}
      >
        <Sentences of={sentences(notice, row)} class="notice" />
        <ArgumentFields command={command} fields={fields} typed={typed} />
        {loses(command) && (
          <div class="loss">
            <Sentences of={lossOfSwitch ? [lossOfSwitch] : sentences(loss ?? [`${command.summary}.`], row)} />
            <p class="muted">This cannot be undone.</p>
          </div>
        )}
      </CommandForm>
    </Dialog>
  )
}

function Sentences(props: { of: readonly string[]; class?: string }): ComponentChildren {
  return props.of.map((one) => (
    <p key={one} class={props.class}>
      {one}
    </p>
  ))
}
