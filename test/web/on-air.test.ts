import t from 'tap'
import { connectPublisher } from '../clients.ts'
import { institutions, playing, station } from '../events.ts'
import { startTestHub } from '../start-hub.ts'
import { createBrowser, skip } from './browser.ts'

const [own = ''] = institutions
const browser = createBrowser(t)

t.test('an event appears on the page of everybody', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const { page, problems } = await browser.open(t, hub)
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByRole('heading', { name: station().title, exact: true }).waitFor()
  await publisher.publish(playing(station(), { title: 'Gezeitenwechsel' }))
  const card = page.getByRole('listitem').filter({ hasText: 'Gezeitenwechsel' })
  await card.waitFor()
  t.match(await card.textContent(), new RegExp(station().title))
  t.same(problems, [])
})
