import { passwordLength } from './users/passwords.ts'

/** The page where a person chooses a password. The policy of all pages forbids inline scripts. */
export const resetPage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="referrer" content="no-referrer">
    <title>Choose a password</title>
    <script src="/auth/reset.js" defer></script>
  </head>
  <body>
    <main>
      <h1>Choose a password</h1>
      <form>
        <p>
          <label for="password">New password, at least ${passwordLength.min} characters</label><br>
          <input id="password" type="password" autocomplete="new-password"
            minlength="${passwordLength.min}" maxlength="${passwordLength.max}" required autofocus>
        </p>
        <p><button>Set password</button></p>
      </form>
      <p role="status"></p>
    </main>
  </body>
</html>
`

/** The script of the reset page. It sends the password with the token from behind `#`. */
export const resetScript = `const form = document.querySelector('form')
const status = document.querySelector('[role=status]')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
if (!token) {
  form.hidden = true
  status.textContent = 'This link is not complete. Ask for a new one.'
}
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  const password = document.getElementById('password').value
  try {
    const response = await fetch('/auth/reset', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, password }),
    })
    const answer = await response.json()
    form.hidden = response.ok
    const [error] = answer.errors ?? []
    status.textContent = response.ok ? 'Your password is set. You can log in now.' : (error ?? answer).message
  } catch {
    status.textContent = 'The hub cannot be reached. Try again.'
  }
  button.disabled = false
})
// Another link to this page differs only behind '#', so the browser does not load the page for it.
addEventListener('hashchange', () => location.reload())
`
