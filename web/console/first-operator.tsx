import { go } from '../page/location.ts'
import { logInAt } from '../page/session.ts'
import { useSubmission } from '../page/submission.ts'

/** Path of the link that a node prints. */
export const firstOperatorPath = '/console/first'

/** The token of the link. Browsers do not send what stands behind `#`, so no log has the token. */
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? ''
// For a link that differs only behind `#`, the browser does not load the page again.
addEventListener('hashchange', () => {
  const isLink = new URLSearchParams(location.hash.slice(1)).has('token')
  if (location.pathname === firstOperatorPath && isLink) location.reload()
})

/** Makes the account of the first operator, by the link that the node printed. */
export function FirstOperator() {
  const { isBusy, problem, submit } = useSubmission(async (fields) => {
    const problem = await logInAt('/auth/first-operator', {
      token,
      email: String(fields.get('email')).trim(),
      password: String(fields.get('password')),
    })
    if (problem === undefined) go('/console')
    return problem
  })

  if (token === '')
    return <p class="nothing">This link is not complete. Copy all of what the node printed.</p>
  return (
    <form class="log-in" onSubmit={submit} aria-labelledby="first-title">
      <h1 id="first-title">The first operator</h1>
      <p class="muted">
        Your account for this console. The link works once; more operators are added in the console.
      </p>
      <label>
        E-mail address
        <input type="email" name="email" autocomplete="username" required maxLength={254} />
      </label>
      <label>
        New password, at least 10 characters
        <input
          type="password"
          name="password"
          autocomplete="new-password"
          required
          minLength={10}
          maxLength={1024}
        />
      </label>
      <button type="submit" class="strong" aria-disabled={isBusy.value}>
        {isBusy.value ? 'Making it…' : 'Make the account'}
      </button>
      <p class="problem" role="alert">
        {problem.value}
      </p>
    </form>
  )
}
