import { useSignal } from '@preact/signals'

/** Handles the submission of a form. `send` resolves with what went wrong, in words. */
export function useSubmission(send: (fields: FormData) => Promise<string | undefined>) {
  const isBusy = useSignal(false)
  const problem = useSignal<string | undefined>(undefined)

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    if (isBusy.value || !(event.target instanceof HTMLFormElement)) return
    const fields = new FormData(event.target)
    isBusy.value = true
    problem.value = await send(fields)
    isBusy.value = false
  }

  return { isBusy, problem, submit }
}
