import type { Page } from 'playwright-core'
import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connectPublisher } from '../../clients.ts'
import { control, data, institutions, playing, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { findNothing } from '../../web/axe.ts'
import { createBrowser, logIn, skip } from '../../web/browser.ts'
import { openConsole } from '../../web/operator.ts'

const [own = ''] = institutions
const browser = createBrowser(t)

t.test('axe finds nothing, on narrow and wide screens, light and dark', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const user = await addUser(hub, await openApi(t, hub), own, { permissions: ['subscribe'] })
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  await publisher.publish(playing(station(), { title: 'Earlier', start: '2026-03-01T12:00:00Z' }))
  await publisher.publish(playing(station()))
  await publisher.publish({ ...playing(station(), { playlistItemId: 'next' }), event: nextEvent })
  await publisher.publish(data(station()))
  await publisher.publish(control(station()))
  const { page } = await browser.open(t, hub)
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByText('Traffic announcement').waitFor()
  await findNothing(t, page, 'the board')

  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByLabel('Password').waitFor()
  await findNothing(t, page, 'the form to log in')

  await logIn(page, user.email)
  await page.getByRole('link', { name: station().title, exact: true }).click()
  await page.getByText('Earlier').waitFor()
  await findNothing(t, page, 'a livestream')
})

t.test('everything can be done with the keyboard', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page } = await browser.open(t, hub)
  await page.getByRole('heading', { name: station().title, exact: true }).waitFor()
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to content')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.textContent'), station().title)
  await page.keyboard.press('Enter')
  await page.getByText('All livestreams').waitFor()
  t.match(page.url(), encodeURIComponent(station().id))
  const focused = (of: Page, element: string, text: string) =>
    of.locator(`${element}:focus`).filter({ hasText: text }).waitFor()
  await page.locator('#main:focus').waitFor()
  await page.keyboard.press('Tab')
  await focused(page, 'a', 'All livestreams')
  await page.keyboard.press('Enter')
  await focused(page, 'a', station().title)

  const user = await addUser(hub, await openApi(t, hub), own)
  const { page: desk, email } = await openConsole(t, hub, browser, '/console/users')
  await desk.evaluate('window.isKept = true')
  await desk.getByText('Skip to content').focus()
  await desk.keyboard.press('Enter')
  await desk.waitForURL('**#main')
  await desk.getByRole('button', { name: 'Add a user' }).click()
  t.equal(await desk.evaluate('window.isKept'), true, 'the page is not loaded anew')

  await desk.getByRole('button', { name: 'Cancel' }).focus()
  await desk.keyboard.press('Enter')
  await focused(desk, 'button', 'Add a user')
  const link = desk.getByRole('button', { name: `Reset link: ${email}` })
  await link.focus()
  await desk.keyboard.press('Enter')
  await focused(desk, 'h2', 'The link works once')

  const removed = desk.getByRole('button', { name: `Remove: ${user.email}` })
  await removed.focus()
  await desk.keyboard.press('Enter')
  await focused(desk, 'button', 'Cancel')
  await desk.getByRole('dialog').getByRole('button', { name: 'Remove' }).focus()
  await desk.keyboard.press('Enter')
  await removed.waitFor({ state: 'detached' })
  await desk.locator('h1:focus').waitFor()

  const account = desk.getByLabel(`Logged in as ${email}`)
  const logOut = desk.getByRole('button', { name: 'Log out' })
  await account.focus()
  await desk.keyboard.press('Enter')
  await logOut.focus()
  await desk.keyboard.press('Escape')
  await logOut.waitFor({ state: 'hidden' })
  await desk.locator('summary:focus').waitFor()
  await desk.keyboard.press('Enter')
  await logOut.waitFor()
  await desk.getByRole('link', { name: 'Clients', exact: true }).click()
  await desk.getByRole('heading', { name: 'Connected' }).waitFor()
  await logOut.waitFor({ state: 'hidden' })
})

const nextEvent = 'de.org.hub.v1.radio.track.next'
