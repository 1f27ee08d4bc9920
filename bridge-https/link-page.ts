import type { Answer } from './answer.ts'

/** A page behind a link of a mail. `script`: its path, because the policy of all pages forbids inline scripts. */
export interface LinkPage {
  title: string
  script: string
  /** What the form has above its button, HTML. */
  content: string
  button: string
  /** What the person reads when the request has succeeded. */
  done: string
  /** Where the person may go then. */
  next?: { href: string; text: string }
  /** What the person reads if the link has no token. */
  incomplete: string
}

/** Answers with a page. What it is about happens when somebody presses the button: programs look at links in mails. */
export function linkPage({ title, script, content, button, done, next, incomplete }: LinkPage): Answer {
  const body = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="referrer" content="no-referrer">
    <title>${title}</title>
    <style>${style}</style>
    <script src="${script}" defer></script>
  </head>
  <body>
    <main>
      <h1>${title}</h1>
      <form data-done="${done}" data-incomplete="${incomplete}">
        ${content}
        <p><button>${button}</button></p>
      </form>
      <p role="status"></p>${next ? `\n      <p id="next" hidden><a href="${next.href}">${next.text}</a></p>` : ''}
    </main>
  </body>
</html>
`
  return { status: 200, body, headers: { 'content-type': 'text/html; charset=utf-8' } }
}

const style = `
      :root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
      main { max-width: 26rem; margin: 12vh auto 0; padding: 0 1.25rem }
      input, button { box-sizing: border-box; width: 100%; padding: 0.5rem 0.75rem; font: inherit }
    `

/** Answers with the script of all these pages. It sends the token from behind `#`, and the fields, to where the page is. */
export function linkScript(): Answer {
  return { status: 200, body: script, headers: { 'content-type': 'text/javascript; charset=utf-8' } }
}

const script = `const form = document.querySelector('form')
const status = document.querySelector('[role=status]')
const next = document.querySelector('#next')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
if (!token) {
  form.hidden = true
  status.textContent = 'This link is not complete. ' + form.dataset.incomplete
}
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  try {
    const response = await fetch(location.pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, ...Object.fromEntries(new FormData(form)) }),
    })
    const answer = await response.json()
    form.hidden = response.ok
    if (next) next.hidden = !response.ok
    const [error] = answer.errors ?? []
    status.textContent = response.ok ? form.dataset.done : (error ?? answer).message
  } catch {
    status.textContent = 'The hub cannot be reached. Try again.'
  }
  button.disabled = false
})
// Another link to this page differs only behind '#', so the browser does not load the page for it.
addEventListener('hashchange', () => location.reload())
`
