import t from 'tap'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { institutions, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { createBrowser, logIn, skip } from '../../web/browser.ts'

const [own = ''] = institutions
const browser = createBrowser(t)

t.test('a stranger is asked to log in, and stays logged in', { skip }, async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const api = await openApi(t, hub)
  const { email } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const { page } = await browser.open(t, hub)
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  await page.getByText('Only users of this hub see what is on air here.').waitFor()
  t.equal(await page.getByRole('heading', { name: station().title }).count(), 0, 'nothing is shown')

  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill('wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('The e-mail address or the password is wrong').waitFor()
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
  const heading = page.getByRole('heading', { name: station().title, exact: true })
  await heading.waitFor()

  const [cookie, ...others] = await page.context().cookies()
  t.match(cookie, { name: /^__Host-Http-/, path: '/', httpOnly: true, secure: true, sameSite: 'Strict' })
  t.equal(others.length, 0)
  const kept = await page.evaluate(
    'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])',
  )
  // A password of MQTT may contain `eyJ` by chance. Only a token has three parts.
  t.notMatch(kept, /eyJ[\w-]+\.[\w-]+\.[\w-]+/, 'no token where a script of another kind could find it')

  await page.reload()
  await heading.waitFor()

  let failing = 3
  await page.route('**/auth/session', (route) =>
    failing-- > 0 ? route.fulfill({ status: 503, json: { message: 'restarting' } }) : route.continue(),
  )
  await page.reload()
  await heading.waitFor()
  t.equal(
    await page.getByRole('heading', { name: 'Log in' }).count(),
    0,
    'a restart of the node ends no log-in',
  )

  const { email: other } = await addUser(hub, api, own, { permissions: ['publish'] })
  const { page: refused } = await browser.open(t, hub)
  await logIn(refused, other)
  await refused.getByText('The user lacks the permission for this').waitFor()

  await refused.route('**/*.js', (route) => route.abort())
  await refused.reload()
  await refused.getByText('The script of this page has not arrived yet.').waitFor()
  await refused.unroute('**/*.js')
  await refused.reload()
  await refused.getByText('The user lacks the permission for this').waitFor()
  t.equal(await refused.getByText('The script of this page').count(), 0)

  failing = 1
  await page.getByLabel(`Logged in as ${email}`).click()
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByRole('alert').filter({ hasText: 'restarting' }).waitFor()
  t.equal((await page.context().cookies()).length, 1, 'and a log-out that failed is not called one')
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  t.equal((await page.context().cookies()).length, 0)
})

t.test('a tab that asks to log in follows a log-in in another tab', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { email } = await addUser(hub, await openApi(t, hub), own, { permissions: ['operate'] })
  const { page, problems } = await browser.open(t, hub, '/console')
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  const elsewhere = await page.context().newPage()
  await elsewhere.goto(page.url())
  await logIn(elsewhere, email)
  await page.getByLabel(`Logged in as ${email}`).waitFor()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()

  await elsewhere.getByLabel(`Logged in as ${email}`).click()
  await elsewhere.getByRole('button', { name: 'Log out' }).click()
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  await logIn(elsewhere, email)
  await page.getByLabel(`Logged in as ${email}`).waitFor()
  t.ok(
    problems.every((problem) => /40[13]/.test(problem)),
    'the browser names refused requests, and nothing else',
  )
})
