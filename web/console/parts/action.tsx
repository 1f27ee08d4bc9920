import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Result } from '../../../operations/operations.ts'
import { useFocusOnHeading } from '../../page/focus.ts'
import { commandPatienceMs, operate } from '../operate.ts'
import { loses, type OperationName } from '../operations.ts'

/** What the hub answered to a command, in words. */
export type Outcome = { text: string; isProblem: boolean } | undefined

/** A button that carries out a command, and shows the answer of the hub. */
export function Action<Name extends OperationName>(props: {
  name: Name
  args?: Record<string, unknown>
  label: string
  /** What the command acts on, if the label does not name it. */
  about?: string
  /** What is lost, for the person to confirm. Commands that lose something need this text. */
  loss?: ComponentChildren
  /** The text that is shown when the command is done. */
  said?: (result: Result<Name>) => string
  /** Gets the outcome of a button that disappears when the command is done. */
  outcome?: Signal<Outcome>
  done?: (result: Result<Name>) => void
  isStrong?: boolean
}) {
  const { name, args = {}, label, about, loss, said, done } = props
  const element = useRef<HTMLSpanElement>(null)
  useFocusOnHeading(element)
  const isBusy = useSignal(false)
  const isAsking = useSignal(false)
  const own = useSignal<Outcome>(undefined)
  const answer = props.outcome ?? own
  if (loses(name) && loss === undefined) throw new Error(`${name} must say what is lost`)

  async function perform(): Promise<void> {
    isAsking.value = false
    isBusy.value = true
    answer.value = undefined
    const operated = await operate(name, args, { patienceMs: commandPatienceMs })
    isBusy.value = false
    if ('problem' in operated) {
      answer.value = { text: operated.problem, isProblem: true }
      return
    }
    if (said) answer.value = { text: said(operated.result), isProblem: false }
    done?.(operated.result)
  }

  return (
    <span ref={element} class="action">
      <button
        type="button"
        class={props.isStrong ? 'strong' : loss === undefined ? '' : 'danger'}
        aria-label={about === undefined ? undefined : `${label}: ${about}`}
        aria-disabled={isBusy.value}
        onClick={() => {
          if (isBusy.value) return
          if (loss === undefined) void perform()
          else isAsking.value = true
        }}
      >
        {label}
      </button>
      {isAsking.value && (
        <Confirm
          title={about === undefined ? `${label}?` : `${label} ${about}?`}
          label={label}
          confirmed={() => void perform()}
          cancelled={() => {
            isAsking.value = false
          }}
        >
          {loss}
        </Confirm>
      )}
      {!props.outcome && <Said answer={own.value} />}
    </span>
  )
}

/** The outcome of a command. Screen readers announce it. */
export function Said({ answer }: { answer: Outcome }) {
  return (
    <span class={answer?.isProblem ? 'said problem' : 'said'} role={answer?.isProblem ? 'alert' : 'status'}>
      {answer?.text}
    </span>
  )
}

/** Asks the person to confirm, and says what is lost. */
function Confirm(props: {
  title: string
  label: string
  confirmed: () => void
  cancelled: () => void
  children: ComponentChildren
}) {
  return (
    <Dialog title={props.title} closed={props.cancelled}>
      <div class="loss">{props.children}</div>
      <p class="muted">This cannot be undone.</p>
      <div class="buttons">
        <button type="button" onClick={props.cancelled}>
          Cancel
        </button>
        <button type="button" class="danger strong" onClick={props.confirmed}>
          {props.label}
        </button>
      </div>
    </Dialog>
  )
}

/** A dialog that is open as long as it is rendered. */
export function Dialog(props: { title: string; closed: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null)
  // A layout effect ends before the dialog leaves the page: `close` can still return the focus.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog ref={dialog} aria-label={props.title} onClose={props.closed}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  )
}
