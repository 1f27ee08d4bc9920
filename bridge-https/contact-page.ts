const pages = {
  confirm: {
    title: 'Mails about your livestreams',
    text: 'The hub mails to this address when a livestream of your institution is silent, plays in a loop, or when events are refused.',
    button: 'Mail them to me',
    done: 'The address is confirmed. Each mail has a link that ends them.',
  },
  unsubscribe: {
    title: 'No more mails about your livestreams',
    text: 'The hub will mail nothing more about your institution to this address.',
    button: 'No more mails',
    done: 'You get no more of these mails. An operator of the hub can set the address again.',
  },
} as const

export type ContactPage = keyof typeof pages

/** The pages behind the links of mails to contacts of institutions. */
export const contactPages = Object.keys(pages) as ContactPage[]

/** A page behind a link. What it is about happens when somebody presses the button: programs look at links in mails. */
export function contactPage(name: ContactPage): string {
  const { title, text, button, done } = pages[name]
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="referrer" content="no-referrer">
    <title>${title}</title>
    <script src="/contact/page.js" defer></script>
  </head>
  <body>
    <main>
      <h1>${title}</h1>
      <form data-done="${done}">
        <p>${text}</p>
        <p><button>${button}</button></p>
      </form>
      <p role="status"></p>
    </main>
  </body>
</html>
`
}

/** The script of both pages. It sends the token from behind `#` to where the page is. */
export const contactScript = `const form = document.querySelector('form')
const status = document.querySelector('[role=status]')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
if (!token) {
  form.hidden = true
  status.textContent = 'This link is not complete. Copy all of it from the mail.'
}
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  try {
    const response = await fetch(location.pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    })
    const answer = await response.json()
    form.hidden = response.ok
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
