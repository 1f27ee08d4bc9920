import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { item, textOf } from '../../validator/feeds.ts'
import { createBrowser, skip } from '../../web/browser.ts'
import { openConsole } from '../../web/operator.ts'

const browser = createBrowser(t)

t.test('of thousands of livestreams a page has some, and finds the others', { skip }, async (t) => {
  const home = await temporaryDirectory(t)
  const feedPath = join(home, 'feed.json')
  const items = Array.from({ length: 2_000 }, (_, n) => item(n + 1, 1 + (n % 20)))
  await writeFile(feedPath, textOf(items))
  const hub = await startTestHub(t, { HUB_FEED: feedPath, HUB_PUBLIC_PAGE: 'true' }, home)

  const { page, problems } = await browser.open(t, hub)
  const cards = page.locator('.card')
  await page.getByRole('button', { name: 'Show more (1500 left)' }).click()
  await page.getByRole('button', { name: 'Show more (1000 left)' }).waitFor()
  t.equal(await cards.count(), 1_000)
  await page.getByText('100 livestreams', { exact: true }).first().waitFor()
  await page.getByRole('searchbox').fill('Station 2000')
  await page.getByRole('heading', { name: 'Station 2000', exact: true }).waitFor()
  t.equal(await cards.count(), 1)
  t.same(problems, [])

  const { page: trace } = await openConsole(t, hub, browser, '/console/trace')
  const names = trace.locator('#trace-names option')
  await names.nth(99).waitFor({ state: 'attached' })
  t.equal(await names.count(), 100)
  await trace.getByLabel('Livestream or institution').fill('station 200')
  await trace.locator('#trace-names option[value="Station 2000"]').waitFor({ state: 'attached' })
  t.equal(await names.count(), 2, 'Station 200 and Station 2000')
})
