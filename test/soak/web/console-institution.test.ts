import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, serviceOf, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { findNothing } from '../../web/axe.ts'
import { createBrowser, logIn, skip } from '../../web/browser.ts'
import { between } from '../../words.ts'

/*
 * The part of the console for users of institutions (open.md §7).
 */
const [own = '', other = ''] = institutions
const browser = createBrowser(t)
const livestream = station()

async function start(t: Test, permissions: string[]) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, pushing(receiver), join(home, 'hub'))
  const api = await openApi(t, hub)
  const user = await addUser(hub, api, own, { permissions })
  const login = await hub.publisher([own])
  const studio = await connectPublisher(t, hub, login, own)
  await studio.publish(playing(livestream, { title: 'On air' }))
  await studio.publish(playing(livestream, { title: 'Too short', length: 0, playlistItemId: 'item-9' }))
  const { token } = await addUser(hub, api, own)
  const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: livestream.id }
  const { json } = await api.call('POST', '/subscriptions', {
    token,
    body: { ...body, url: receiver.url('/hook') },
  })
  const opened = await browser.open(t, hub, '/console')
  await logIn(opened.page, user.email)
  await opened.page.getByText('Answers', { exact: true }).waitFor()
  return { hub, receiver, studio, user, login, webhook: String(json.name), ...opened }
}

const both = ['publish', 'subscribe']
const open = (page: Page, name: string) =>
  page.getByRole('navigation').getByRole('link', { name, exact: true }).click()

t.test('why was my event refused, and what did the hub make of it', { skip }, async (t) => {
  const { page, problems } = await start(t, both)
  await open(page, 'Refusals')
  const row = page.getByRole('row').filter({ hasText: 'Too short' })
  await row.getByText('send a number greater than 0 for length and cycle').waitFor()
  const which = page.getByLabel('Which are listed')
  await which.selectOption('warned')
  await page.getByText('Nothing was refused or warned of within a week.').waitFor()
  await which.selectOption('refused')
  await row.getByRole('link', { name: 'Too short – Mira Hollund' }).click()
  await page.getByRole('heading', { name: 'Why it was refused' }).waitFor()
  await page.getByText('"length":0').waitFor()
  t.same(problems, [])
})

t.test('what a playout sends wrong again and again is one row, with how often', { skip }, async (t) => {
  const { page, studio, problems } = await start(t, both)
  for (const playlistItemId of ['item-1', 'item-2', 'item-3'])
    await studio.publish(playing(livestream, { title: 'Again', length: 0, playlistItemId }))
  await studio.publish(playing(livestream, { title: 'Again', length: -1 }))
  await studio.publish(playing(station(0, 2), { title: 'Again', length: 0 }))
  await open(page, 'Refusals')
  const rows = page.getByRole('row').filter({ hasText: 'Again' })
  await rows.filter({ hasText: /3 times since \d/ }).waitFor()
  t.equal(await rows.count(), 3)
  await rows.filter({ hasText: '3 times' }).getByRole('link', { name: 'Again – Mira Hollund' }).click()
  await page.getByText('"playlistItemId":"item-3"').waitFor()
  await open(page, 'Events')
  await rows.nth(4).waitFor()
  t.equal(await rows.count(), 5, 'the list of all events has each')
  t.same(problems, [])
})

t.test('what did the hub make of an event that was published', { skip }, async (t) => {
  const { page, studio, problems } = await start(t, both)
  const [first, second] = [livestream, station(0, 2)]
  await studio.publish(playing(first, { title: 'For two', services: [first, second].map(serviceOf) }))
  await open(page, 'Events')
  await page.getByRole('row').filter({ hasText: 'Too short' }).waitFor()
  const row = page.getByRole('row').filter({ hasText: 'For two' })
  for (const { title } of [first, second]) await row.getByText(title, { exact: true }).waitFor()
  await row.getByRole('link', { name: 'For two – Mira Hollund' }).click()
  await page.getByText('Sent by client').waitFor()
  await page.getByText(studio.client.options.clientId ?? '', { exact: true }).waitFor()
  await page.getByRole('heading', { name: 'Who got it' }).waitFor()
  await page.getByRole('img', { name: /^Decided after .* written .* after [\d.,]+ ms\.$/ }).waitFor()
  t.notMatch(await page.getByRole('main').textContent(), 'budget', 'operators answer for it')
  await page.getByRole('main').getByRole('link', { name: 'Events' }).last().click()
  await row.waitFor()
  t.same(problems, [])
})

t.test('a list cuts no name of a livestream within a word', { skip }, async (t) => {
  const { page, studio } = await start(t, both)
  await studio.publish(playing(livestream))
  await studio.publish({ ...playing(livestream), event: `de.org.hub.v1.radio.${'x'.repeat(200)}` })
  await open(page, 'Events')
  const [word = ''] = livestream.title.split(' ')
  const name = page.getByRole('cell', { name: livestream.title, exact: true }).first()
  await name.waitFor()
  const lines = await name.evaluate((cell, length) => {
    const range = cell.ownerDocument.createRange()
    const text = cell.ownerDocument.createTreeWalker(cell, 4).nextNode()
    if (!text) return 0
    range.setStart(text, 0)
    range.setEnd(text, length)
    return range.getClientRects().length
  }, word.length)
  t.equal(lines, 1, word)
})

t.test('an event for livestreams of two publishers is listed with both', { skip }, async (t) => {
  const { page, studio, problems } = await start(t, both)
  await studio.publish(playing(livestream, { services: [livestream, station(1)].map(serviceOf) }))
  await open(page, 'Refusals')
  const row = page.getByRole('row').filter({ hasText: livestream.title }).filter({ hasText: 'blocked' })
  await row.getByTitle(station(1).externalId).waitFor()
  t.same(problems, [])
})

t.test('what does my station show, and what do I configure', { skip }, async (t) => {
  const { page, problems } = await start(t, both)
  await page.getByRole('heading', { name: 'Livestreams', level: 1 }).waitFor()
  const row = page.getByRole('row').filter({ hasText: 'On air' })
  await row.getByText('on air', { exact: true }).waitFor()
  await row.getByRole('link', { name: livestream.title, exact: true }).click()
  t.equal(await page.getByLabel('Livestream id', { exact: true }).inputValue(), livestream.id)
  t.equal(await page.getByLabel('Topic to publish to', { exact: true }).inputValue(), `inbox/${own}`)
  t.equal(await page.getByRole('button', { name: /^Copy:/ }).count(), 6)
  t.same(problems, [])
})

t.test('since when does my station show what is over', { skip }, async (t) => {
  const { page, studio, problems } = await start(t, both)
  const stale = station(0, 3)
  const begun = new Date(Date.now() - 3_600_000).toISOString()
  await studio.publish(
    playing(stale, { title: 'Long over', start: begun, length: 60, playlistItemId: 'item-8' }),
  )
  await page.reload()
  const row = page.getByRole('row').filter({ hasText: stale.title })
  await row.getByText('stale', { exact: true }).waitFor()
  await row.getByText(/^should have ended .+ ago$/).waitFor()
  await row.getByRole('link', { name: stale.title, exact: true }).click()
  await page.getByText('Should have ended', { exact: true }).waitFor()
  t.same(problems, [])
})

t.test('an event is tried out by pasting it', { skip }, async (t) => {
  const { page, problems } = await start(t, both)
  await open(page, 'Dry run')
  await page.getByLabel('Event (JSON)').fill(JSON.stringify(playing(livestream, { length: 0 })))
  await page.getByRole('button', { name: 'Check' }).click()
  await page.getByText('send a number greater than 0').waitFor()
  await page.getByLabel('Event (JSON)').fill(JSON.stringify(playing(livestream, { title: 'Tried' })))
  await page.getByRole('button', { name: 'Check' }).click()
  await page.getByText('published, dry run').waitFor()
  await page.getByText(`radio/${livestream.id}/track/playing`).waitFor()
  t.same(problems, [])
})

t.test('the weekly report of this week and of others', { skip }, async (t) => {
  const { page, studio, problems } = await start(t, both)
  await open(page, 'Weekly report')
  const choice = page.getByLabel('Week')
  t.equal(await choice.locator('option').count(), 13)
  await page.getByText('No event came.').waitFor()
  await studio.publish(playing(livestream, { title: 'Too long', length: 0, playlistItemId: 'item-10' }))
  await choice.selectOption({ index: 0 })
  const row = page.getByRole('row').filter({ hasText: livestream.title })
  await row.getByText('1 (100 %)').first().waitFor()
  const refusal = page.getByRole('row').filter({ hasText: 'exclusiveMinimum.openapi.validation' })
  await refusal.getByText('send a number greater than 0').waitFor()
  t.match(await refusal.textContent(), /^2/)
  t.same(problems, [])
})

t.test('the weekly report fits a window of any width', { skip }, async (t) => {
  const { page } = await start(t, both)
  await open(page, 'Weekly report')
  await page.getByRole('columnheader', { name: 'Next came true' }).waitFor()
  for (const width of [900, 1_050, 1_100, 1_150, 1_200]) {
    await page.setViewportSize({ width, height: 800 })
    const excess = await page.locator('table').evaluateAll((tables) =>
      tables.map((table) => {
        const [right, room] = [table, table.parentElement].map(
          (one) => one?.getBoundingClientRect().right ?? 0,
        )
        return Math.max(0, Math.round((right ?? 0) - (room ?? 0)))
      }),
    )
    t.strictSame(
      excess,
      excess.map(() => 0),
      `${width} px`,
    )
  }
})

t.test('a view that asks once a minute asks sooner when the hub was not reached', { skip }, async (t) => {
  const { page } = await start(t, both)
  await page.route('**/institution/report*', (route) => route.abort(), { times: 1 })
  await page.clock.install()
  await open(page, 'Weekly report')
  await page.getByText('The hub cannot be reached.').waitFor()
  await page.clock.pauseAt(Date.now() + 1_000)
  const again = page.waitForRequest('**/institution/report*')
  await page.clock.runFor(10_000)
  await again
  await page.clock.resume()
  await page.getByText('No event came.').waitFor()
  t.equal(await page.getByText('The hub cannot be reached.').count(), 0)
})

t.test('which of my credentials may go: it goes', { skip }, async (t) => {
  const { hub, page, login, problems } = await start(t, both)
  await open(page, 'Credentials')
  const row = page.getByRole('row').filter({ hasText: login.username })
  await row.getByText('a client is connected with it').waitFor()
  await row.getByRole('button', { name: /^Revoke/ }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('1 connected client will be disconnected.').waitFor()
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('No credential publishes for your institution').waitFor()
  t.same(await hub.ask('credentials.list', { role: 'publisher' }), [])
  t.same(problems, [])
})

t.test('does my webhook work: test, pause, resume, replay', { skip }, async (t) => {
  const { receiver, page, webhook, problems } = await start(t, both)
  await open(page, 'Webhooks')
  await page.getByRole('link', { name: webhook }).click()
  await page.getByRole('button', { name: /^Test/ }).click()
  await page.getByRole('status', { name: 'The test message' }).getByText('yes').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: /^Pause/ }).click()
  await page.getByText('paused', { exact: true }).first().waitFor()
  await page.getByRole('button', { name: /^Resume/ }).click()
  await page.getByRole('button', { name: /^Pause/ }).waitFor()
  await page.getByRole('button', { name: /^Replay/ }).click()
  await page.getByLabel('Or all events since').fill('2026-01-01T00:00')
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
  await page.getByText('1 message will be sent once more.').waitFor()
  await receiver.until(({ length }) => length === 2)
  t.same(problems, [])
})

t.test('why does my webhook not work: the list says it', { skip }, async (t) => {
  const { receiver, studio, page, problems } = await start(t, both)
  receiver.behave(() => 500)
  await studio.publish(playing(livestream, { title: 'Not taken' }))
  await open(page, 'Webhooks')
  const row = page.getByRole('row').filter({ hasText: receiver.url('/hook') })
  await row.getByText('retrying', { exact: true }).waitFor()
  await row.getByText('answered 500', { exact: true }).waitFor()
  await row.getByRole('button', { name: /^Test/ }).click()
  await page.getByRole('status', { name: 'The test message' }).getByText('no', { exact: true }).waitFor()
  t.same(problems, [])
})

t.test('each permission has its views, and nothing else is asked or shown', { skip }, async (t) => {
  const ofPublish = between(
    `Livestreams | Refusals | Events | Weekly report | Dry run | Credentials | Contact`,
  )
  const withPermission = (name: string) => `with the permission ${name}, which an operator gives`
  for (const [permissions, views, lacking] of [
    [['publish'], ofPublish, [`Webhooks: ${withPermission('subscribe')}`]],
    [['subscribe'], ['Webhooks'], [`${ofPublish.join(', ')}: ${withPermission('publish')}`]],
    [both, [...ofPublish, 'Webhooks'], []],
  ] as const) {
    const { page, problems } = await start(t, [...permissions])
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    const menu = page.getByRole('navigation')
    t.same(await menu.getByRole('link').allTextContents(), views)
    t.same(await menu.getByRole('paragraph').allTextContents(), lacking)
    for (const view of views) {
      await open(page, view)
      await page.getByRole('heading', { name: view, level: 1 }).waitFor()
      t.notMatch(await page.locator('main').textContent(), station(1).title)
    }
    for (const path of asked) t.notMatch(path, /^\/operate/)
    t.same(problems, [])
  }
})

t.test('an operator who belongs to an institution has both', { skip }, async (t) => {
  const { page, problems } = await start(t, [...both, 'operate'])
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  await page.getByRole('navigation').getByRole('heading', { name: 'Your institution' }).waitFor()
  await page.locator('a[href="/console/own-livestreams"]').click()
  await page.getByRole('link', { name: livestream.title, exact: true }).click()
  await page.getByLabel('Livestream id', { exact: true }).waitFor()
  t.match(page.url(), /own-livestreams/)
  t.same(problems, [])
})

t.test('who logs in after another user finds nothing of theirs', { skip }, async (t) => {
  const { hub, page, user } = await start(t, both)
  await open(page, 'Refusals')
  await page.getByLabel('Which are listed').selectOption('refused')
  await open(page, 'Dry run')
  await page.getByLabel('Event (JSON)').fill('Geheim')
  const elsewhere = await page.context().newPage()
  await elsewhere.goto(page.url())
  await elsewhere.getByLabel(`Logged in as ${user.email}`).click()
  await elsewhere.getByRole('button', { name: 'Log out' }).click()
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  const theirs = await connectPublisher(t, hub, await hub.publisher([other]), other)
  await theirs.publish(playing(livestream, { title: 'For a livestream of others' }))
  const { email } = await addUser(hub, await openApi(t, hub), other, { permissions: both })
  await logIn(page, email)
  t.equal(await page.getByLabel('Event (JSON)').inputValue(), '')
  await open(page, 'Refusals')
  t.equal(await page.getByLabel('Which are listed').inputValue(), '')
  const row = page.getByRole('row').filter({ hasText: 'For a livestream of others' })
  await row.waitFor()
  t.notMatch(await row.textContent(), livestream.title)
})

t.test('a log-in that became that of another user begins the page anew', { skip }, async (t) => {
  const { hub, page, user } = await start(t, both)
  await open(page, 'Dry run')
  await page.getByLabel('Event (JSON)').fill('Geheim')
  const { email } = await addUser(hub, await openApi(t, hub), other, { permissions: both })
  const { page: elsewhere } = await browser.open(t, hub, '/console')
  await logIn(elsewhere, email)
  // As on a page that the browser kept while others logged in.
  await page.context().addCookies(await elsewhere.context().cookies())
  await hub.ask('users.remove', { email: user.email })
  await page.getByRole('button', { name: 'Check' }).click()
  await page.getByLabel(`Logged in as ${email}`).waitFor()
  t.equal(await page.getByLabel('Event (JSON)').inputValue(), '')
})

t.test('ids of another institution in the address show nothing', { skip }, async (t) => {
  const { hub, page } = await start(t, both)
  const theirs = await connectPublisher(t, hub, await hub.publisher([other]), other)
  const { id } = await theirs.publish(playing(station(1), { title: 'Geheim' }))
  for (const path of [`own-livestreams/${station(1).id}`, `own-refusals/${id}`, 'own-subscriptions/x']) {
    await page.goto(`https://localhost:${hub.httpsPort}/console/${path}`)
    await page.getByText(/there is no (livestream|event|subscription)/).waitFor()
    t.notMatch(await page.locator('main').textContent(), /Geheim/)
  }
  await page.goto(`https://localhost:${hub.httpsPort}/console/trace`)
  await page.getByRole('heading', { name: 'This is for operators' }).waitFor()
})

t.test('axe finds nothing, on narrow and wide screens, light and dark', { skip }, async (t) => {
  const { page, webhook, login } = await start(t, both)
  const shown = async (view: string, what: string) => {
    await page.getByText(what).first().waitFor()
    await findNothing(t, page, view)
  }
  await shown('livestreams', livestream.title)
  await page.getByRole('link', { name: livestream.title, exact: true }).click()
  await shown('livestream', 'Topic to publish to')
  await open(page, 'Refusals')
  await shown('refusals', 'Too short')
  await open(page, 'Events')
  await shown('events', 'On air')
  await open(page, 'Refusals')
  await page.getByRole('link', { name: 'Too short – Mira Hollund' }).click()
  await shown('event', 'Why it was refused')
  await open(page, 'Dry run')
  await page.getByLabel('Event (JSON)').fill(JSON.stringify(playing(livestream, { length: 0 })))
  await page.getByRole('button', { name: 'Check' }).click()
  await shown('check', 'send a number greater than 0')
  await open(page, 'Weekly report')
  await page.getByLabel('Week').selectOption({ index: 0 })
  await shown('report', 'send a number greater than 0')
  await open(page, 'Credentials')
  await shown('credentials', login.username)
  await open(page, 'Webhooks')
  await shown('webhooks', webhook)
  await page.getByRole('link', { name: webhook }).click()
  await shown('webhook', 'Last deliveries')
})
