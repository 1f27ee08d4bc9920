import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { deadLetterChange, readWork, removal, workPrefix } from '../../../delivery/queue/work-records.ts'
import { journalKey, readEntry } from '../../../journal/entry.ts'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { connect } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { openStoreOf } from '../../stores.ts'
import { createBrowser, logIn, skip } from '../../web/browser.ts'
import { openConsole } from '../../web/operator.ts'

const [own = ''] = institutions
const browser = createBrowser(t)
const contact = 'team@player.example'

t.test('a credential is rotated, and the new one works over MQTT', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { username } = await hub.publisher([own])
  const { page, problems, email } = await openConsole(t, hub, browser, '/console/credentials')
  await page.getByRole('button', { name: `Rotate: ${username}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  await page.getByText('The password is shown only now').waitFor()
  const issued = {
    username: await page.getByLabel('Username', { exact: true }).inputValue(),
    password: await page.getByLabel('Password', { exact: true }).inputValue(),
  }
  t.not(issued.username, username)
  await connect(t, hub, issued)
  t.match(await hub.ask('credentials.show', { username }), { revokeAt: String })
  await page.getByRole('row').filter({ hasText: issued.username }).getByText('1 client').waitFor()
  t.match((await hub.ask<object[]>('audit')).at(-1), {
    who: email,
    action: 'credentials.rotate',
    target: username,
  })

  const other = await openConsole(t, hub, browser, '/console/credentials')
  await other.page.getByRole('button', { name: `Rotate: ${username}` }).click()
  await other.page.getByText('it has been rotated already').first().waitFor()
  await other.page.getByLabel('The old one goes on working').selectOption('for 7 days')
  await other.page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  await other.page.getByRole('alert').filter({ hasText: 'rotate its successor' }).waitFor()
  t.equal(
    await other.page.getByLabel('The old one goes on working').inputValue(),
    '604800',
    'the choice stays',
  )
  t.same(problems, [])
})

t.test('credentials of pages do not hide the others', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { username } = await hub.publisher([own])
  const reader = await browser.open(t, hub)
  await reader.page.getByText('Live', { exact: true }).waitFor()
  const { page } = await openConsole(t, hub, browser, '/console/credentials')
  const ofPage = page.getByRole('row').filter({ hasText: 'a page of stranger' })
  const ofPublisher = page.getByRole('row').filter({ hasText: username })
  await ofPublisher.waitFor()
  await page.getByRole('button', { name: 'Without pages (1)', pressed: true }).waitFor()
  t.equal(await ofPage.count(), 0)
  await page.getByRole('button', { name: 'All (2)' }).click()
  await ofPage.waitFor()
  t.equal(await ofPublisher.count(), 1)
})

t.test('what takes something away is asked first, and names what is lost', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.subscriber('radio/#')
  const { client } = await connect(t, hub, login)
  const { page } = await openConsole(t, hub, browser, '/console/credentials')
  const row = page.getByRole('row').filter({ hasText: login.username })
  await row.getByText('1 client').waitFor()
  await row.getByRole('button', { name: 'Revoke' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('1 connected client will be disconnected').waitFor()
  t.notMatch(await dialog.textContent(), /lost/, 'sessions stay')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  t.ok(await hub.ask('credentials.show', { username: login.username }), 'nothing was done')

  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()))
  await row.getByRole('button', { name: 'Revoke' }).click()
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await closed
  await row.waitFor({ state: 'detached' })

  const persistent = await connect(t, hub, await hub.subscriber('radio/#'), { clean: false, clientId: '..' })
  await persistent.client.endAsync()
  await page.goto('about:blank')
  await page.goto(`https://localhost:${hub.httpsPort}/console/clients`)
  await page.getByRole('link', { name: '..', exact: true }).click()
  await page.getByRole('heading', { name: '..', exact: true, level: 1 }).waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'Drop: ..' }).click()
  await dialog.getByRole('button', { name: 'Drop' }).click()
  await page.getByRole('heading', { name: 'Connected' }).waitFor()
  t.match(page.url(), /\/console\/clients$/)
})

t.test(
  'a failing webhook is seen first with its contact, and a dead letter is replayed',
  { skip },
  async (t) => {
    const home = await temporaryDirectory(t)
    const receiver = await startReceiver(t, home)
    const env = { ...pushing(receiver), HUB_PUBLIC_URL: 'https://hub.example' }
    const before = await startTestHub(t, env, home)
    const api = await openApi(t, before)
    const { token, email } = await addUser(before, api, own)
    const publish = (title: string) =>
      api.call('POST', '/events/de.org.hub.v1.radio.track.playing', {
        token,
        body: { ...playing(station()), title },
      })
    await publish('makes the topic')
    const body = { type: 'PUBSUB', method: 'PUSH', url: receiver.url(), contact, topic: station().id }
    await api.call('POST', '/subscriptions', { token, body })
    receiver.behave(() => 503)
    await publish('Unzustellbar')
    await receiver.until((received) => received.length > 0)
    await before.close()
    await giveUpAll(join(home, 'data'))
    const hub = await startTestHub(t, env, home)

    const { page, problems } = await openConsole(t, hub, browser, '/console/webhooks')
    await page.getByText('1 target of 1 needs attention.').waitFor()
    const row = page.getByRole('row').filter({ hasText: receiver.url() })
    t.match(await row.getByRole('link', { name: contact }).getAttribute('href'), /^mailto:team@player/)
    await row.getByRole('link', { name: receiver.url() }).click()
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor()
    await page.getByText(`by ${email}, `).waitFor()
    const refused = receiver.received.length
    receiver.behave(() => 201)
    const letter = page.getByRole('table', { name: 'Dead letters' }).getByRole('link')
    t.equal(await letter.getAttribute('href'), `/console/trace/${await letter.textContent()}`)
    await page.getByRole('button', { name: /^Replay: / }).click()
    await receiver.until((received) => received.length > refused)
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor({ state: 'detached' })
    await page.getByText('Sending 1 message once more.').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    // The buttons move when the page says who has paused.
    await page
      .getByText(/^by .*, \d/)
      .nth(1)
      .waitFor()
    await page.getByRole('button', { name: 'Resume' }).hover()
    await page.mouse.down({ clickCount: 2 })
    await page.mouse.up({ clickCount: 2 })
    await page.getByText('Paused: its events are collected.').waitFor()
    t.match(await hub.ask('subscriptions.list'), [{ state: 'paused' }], 'a double click is one click')
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Resume', 'the focus stays')
    t.same(problems, [])
  },
)

t.test('what the hub refuses is said in its words, and what was typed stays', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page } = await openConsole(t, hub, browser, '/console/users')
  await page.getByRole('button', { name: 'Add a user' }).click()
  const form = page.getByRole('form', { name: 'Add a user' })
  await form.getByLabel('E-mail address').fill('new@radio.example')
  await form.getByLabel('Institution').fill('Küstenfunk')
  await form.getByRole('button', { name: 'Add' }).click()
  await form.getByRole('alert').filter({ hasText: 'institution' }).waitFor()
  t.equal(await form.getByLabel('E-mail address').inputValue(), 'new@radio.example')
  await form.getByLabel('Institution').fill(own)
  await form.getByLabel('operate').check()
  await form.getByRole('button', { name: 'Add' }).click()
  await page.getByText('The link works once').waitFor()
  const link = new URL(await page.getByLabel('Link', { exact: true }).inputValue())
  const api = await openApi(t, hub)
  const resetToken = new URLSearchParams(link.hash.slice(1)).get('token')
  t.equal((await api.call('POST', '/auth/reset', { body: { token: resetToken, password } })).status, 200)
  t.match(
    (await hub.ask<{ email: string }[]>('users.list')).find(({ email }) => email === 'new@radio.example'),
    { permissions: ['publish', 'subscribe', 'operate'], hasPassword: true },
  )
})

t.test('an error names its field, and what was typed outlives the log-in', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page, email } = await openConsole(t, hub, browser, '/console/commands/users.list')
  await page.getByLabel('Institution').fill(own)
  await page.getByLabel('Limit').fill('0')
  await page.getByRole('button', { name: 'Ask' }).click()
  await page
    .getByRole('alert')
    .filter({ hasText: /^limit: / })
    .waitFor()
  await logOutElsewhere(page, email)
  await logIn(page, email)
  t.equal(await page.getByLabel('Institution').inputValue(), own)
  t.equal(await page.getByLabel('Limit').inputValue(), '0')
})

t.test('a log-out reaches all tabs, and pages that the browser kept', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page, email } = await openConsole(t, hub, browser, '/console/users')
  await page.getByRole('table', { name: 'Users' }).waitFor()
  // From now on the node tells this tab nothing.
  await page.route('**/operate/*', () => {})
  await logOutElsewhere(page, email)
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  t.equal(await page.getByText(email).count(), 0)

  await page.unroute('**/operate/*')
  await logIn(page, email)
  await page.getByRole('table', { name: 'Users' }).waitFor()
  await page.route('**/operate/*', () => {})
  // What a browser does that kept the page, and shows it again after a log-out.
  await page.evaluate(
    `localStorage.clear(); dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`,
  )
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
})

t.test('a new link is not called copied, and a user must be allowed something', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const [a, b] = [await addUser(hub, api, own), await addUser(hub, api, own)]
  const { page, email } = await openConsole(t, hub, browser, '/console/users')
  await page.context().grantPermissions(['clipboard-write'])
  const linkOf = (email: string) => page.getByRole('button', { name: `Reset link: ${email}` })
  await linkOf(a.email).click()
  await page.getByRole('button', { name: 'Copy: Link' }).click()
  await page.getByText('Copied', { exact: true }).waitFor()
  await linkOf(b.email).click()
  await page.getByText(`Hand it to ${b.email}`).waitFor()
  t.equal(await page.getByText('Copied', { exact: true }).count(), 0)

  await page.getByRole('link', { name: 'Clients', exact: true }).click()
  await page.getByRole('heading', { name: 'Connected' }).waitFor()
  await page.goBack()
  await page.getByText(`Hand it to ${b.email}`).waitFor()
  await logOutElsewhere(page, email)
  await logIn(page, email)
  await page.getByText(`Hand it to ${b.email}`).waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText(`Hand it to ${b.email}`).waitFor({ state: 'detached' })

  await page.getByRole('button', { name: 'Add a user' }).click()
  const form = page.getByRole('form', { name: 'Add a user' })
  await form.getByLabel('E-mail address').fill('none@radio.example')
  await form.getByLabel('Institution').fill(own)
  for (const box of ['publish', 'subscribe']) await form.getByLabel(box).uncheck()
  await form.getByRole('button', { name: 'Add' }).click()
  await form.getByRole('alert').filter({ hasText: 'Tick at least one: May.' }).waitFor()
})

t.test('the link that a node prints makes the first operator', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page, problems } = await browser.open(t, hub, `/console/first#token=${hub.firstOperatorToken}`)
  await page.getByLabel('E-mail address').fill('first@hub.example')
  await page.getByLabel(/^New password/).fill(password)
  await page.getByRole('button', { name: 'Make the account' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  t.same(problems, [])

  const { page: late } = await browser.open(t, hub, `/console/first#token=${hub.firstOperatorToken}`)
  await late.getByLabel('E-mail address').fill('second@hub.example')
  await late.getByLabel(/^New password/).fill(password)
  await late.getByRole('button', { name: 'Make the account' }).click()
  await late.getByText('The link is not valid, has expired, or was used already').waitFor()
  t.equal(await late.getByLabel('E-mail address').inputValue(), 'second@hub.example')
})

/** Logs out in another tab. */
async function logOutElsewhere(page: Page, email: string): Promise<void> {
  const elsewhere = await page.context().newPage()
  await elsewhere.goto(page.url())
  await elsewhere.getByLabel(`Logged in as ${email}`).click()
  await elsewhere.getByRole('button', { name: 'Log out' }).click()
  await elsewhere.getByRole('heading', { name: 'Log in' }).waitFor()
  await elsewhere.close()
}

/** Makes dead letters of all waiting items, as a hub does after seven days. */
async function giveUpAll(dataDir: string): Promise<void> {
  const store = await openStoreOf({}, dataDir)
  const { items } = await readWork(store)
  const given = { givenUpAt: new Date().toISOString(), reason: 'it waited longer than items are kept' }
  const changes = items.map(async ([queue, { position, ...item }]) => {
    const message = await store.get(journalKey(position))
    const payload = message && readEntry(position, message).entry.payload
    return [removal(workPrefix, queue, item), deadLetterChange(queue, { ...item, ...given }, payload)]
  })
  await store.commit((await Promise.all(changes)).flat())
  await store.close()
}
