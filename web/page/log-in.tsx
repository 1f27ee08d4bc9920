import { useEffect, useRef } from 'preact/hooks'
import { useFocusOnHeading } from './focus.ts'
import { isLogInOptional, logIn, mustLogIn } from './session.ts'
import { useSubmission } from './submission.ts'

/** The form to log in, with e-mail address and password. */
export function LogIn({ need }: { need: string }) {
  const { isBusy, problem, submit } = useSubmission((fields) =>
    logIn(String(fields.get('email')), String(fields.get('password'))),
  )

  const form = useRef<HTMLFormElement>(null)
  useFocusOnHeading(form)
  // A button has opened this form, and is gone. The form of a page that begins with it takes no focus.
  useEffect(() => {
    if (isLogInOptional.value) form.current?.querySelector('input')?.focus()
  }, [])

  return (
    <form ref={form} class="log-in" onSubmit={submit} aria-labelledby="log-in-title">
      <h1 id="log-in-title">Log in</h1>
      {need === 'subscribe' && !isLogInOptional.value && (
        <p>Only users of this hub see what is on air here.</p>
      )}
      <p class="muted">With your user of the hub. It needs the permission to {need}.</p>
      <label>
        E-mail address
        <input type="email" name="email" autocomplete="username" required maxLength={254} />
      </label>
      <label>
        Password
        <input type="password" name="password" autocomplete="current-password" required />
      </label>
      <button type="submit" class="strong" aria-disabled={isBusy.value}>
        {isBusy.value ? 'Logging in…' : 'Log in'}
      </button>
      {isLogInOptional.value && (
        <button
          type="button"
          onClick={() => {
            mustLogIn.value = false
          }}
        >
          Go on without
        </button>
      )}
      <p class="problem" role="alert">
        {problem.value}
      </p>
    </form>
  )
}
