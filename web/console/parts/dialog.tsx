import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** What the hub answered to a command, in words. */
export type ActionResult = { text: string; isProblem: boolean } | undefined

/** The outcome of a command. Screen readers announce it. */
export function Said({ answer }: { answer: ActionResult }) {
  return (
    <span class={answer?.isProblem ? 'said problem' : 'said'} role={answer?.isProblem ? 'alert' : 'status'}>
      {answer?.text}
    </span>
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
