import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'
import { createBrowser, logIn, skip } from '../../web/browser.ts'

const [own = ''] = institutions
const browser = createBrowser(t)

t.test('the page says when the node is away, and catches up when it is back', { skip }, async (t) => {
  // The second node takes the same ports.
  const ports = { HUB_HTTPS_PORT: `${await freePort()}`, HUB_MQTT_PORT: `${await freePort()}` }
  const hub = await startTestHub(t, ports)
  const first = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const { page } = await browser.open(t, hub)
  await first.publish(playing(station(), { title: 'Before the break' }))
  await page.getByText('Before the break').waitFor()
  await hub.close()
  await page.getByText('Connection lost', { exact: true }).waitFor()
  t.equal(await page.getByText('Before the break').count(), 1, 'what was known stays')

  const again = await restarted(t, hub)
  const second = await connectPublisher(t, again, await again.publisher([own]), own)
  await second.publish(playing(station(), { title: 'While nobody looked' }))
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByText('While nobody looked').waitFor()
})

t.test('a line over which nothing comes any more is noticed', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page } = await browser.open(t, hub, '/docs/')
  let isDead = false
  let answered = () => {}
  await page.routeWebSocket('**/mqtt', (line) => {
    const server = line.connectToServer()
    line.onMessage((message) => {
      if (!isDead) server.send(message)
    })
    server.onMessage((message) => {
      if (!isDead) line.send(message)
      answered()
    })
  })
  await page.clock.install()
  await page.goto(`https://localhost:${hub.httpsPort}/`)
  const states = page.locator('.connection')
  await states.getByText('Live').waitFor()
  await page.evaluate(watchForLoss)
  for (let nth = 0; nth < 3; nth++) {
    const sign = new Promise<void>((resolve) => {
      answered = resolve
    })
    for (let jump = 0; jump < 2; jump++) await page.clock.fastForward(10_000)
    await sign
  }
  t.equal(await page.evaluate('window.wasLost'), undefined, 'a quiet line is no dead one')
  isDead = true
  for (let seconds = 0; seconds < 40; seconds += 10) await page.clock.fastForward(10_000)
  await states.getByText('Connection lost').waitFor()
  isDead = false
  await states.getByText('Live').waitFor()
})

t.test('a page that must wait for its turn says how long', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page } = await browser.open(t, hub, '/docs/')
  await page.clock.install()
  for (const [seconds, words] of [
    [1_170, '20 min'],
    [40, '40 s'],
  ] as const) {
    await page.route('**/auth/mqtt', (route) =>
      route.fulfill({ status: 429, headers: { 'retry-after': `${seconds}` }, json: { message: 'slower' } }),
    )
    await page.goto(`https://localhost:${hub.httpsPort}/`)
    await page.getByText(`Too many pages were opened. The hub lets the next one in after ${words}.`).waitFor()
    const first = page.getByRole('listitem').first()
    await first.getByText('…', { exact: true }).waitFor()
    t.equal(await page.getByText('No title yet').count(), 0, 'the page cannot know')
  }
  await page.unroute('**/auth/mqtt')
  await page.clock.fastForward(40_000)
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByText('No title yet').first().waitFor()
})

t.test('a credential that was revoked is replaced', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const { page } = await browser.open(t, hub)
  await page.getByText('Live', { exact: true }).waitFor()
  const [shared] = await ofStrangers(hub)
  await hub.ask('credentials.revoke', { username: shared?.username })
  await hub.until(async () => (await ofStrangers(hub)).length === 1)
  await page.getByText('Live', { exact: true }).waitFor()
  await publisher.publish(playing(station(), { title: 'Again' }))
  await page.getByText('Again', { exact: true }).waitFor()
})

t.test('a page changes to its next credential before the hour is over', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const user = await addUser(hub, await openApi(t, hub), own, { permissions: ['subscribe'] })
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const { page } = await browser.open(t, hub, '/docs/')
  await page.clock.install()
  await page.goto(`https://localhost:${hub.httpsPort}/`)
  await logIn(page, user.email)
  const states = page.locator('.connection')
  await states.getByText('Live').waitFor()
  await page.evaluate(watchForLoss)
  await page.clock.fastForward('58:30')
  const connected = () => hub.ask<{ username: string }[]>('clients.list')
  const own1 = async () => (await connected()).filter(({ username }) => username.startsWith('sub-page-'))
  await hub.until(async () => (await ofUser(hub, user.email)).length === 2 && (await own1()).length === 1)
  await publisher.publish(playing(station(), { title: 'After the change' }))
  await page.getByText('After the change').waitFor()
  t.equal(await page.evaluate('window.wasLost'), undefined, 'without a gap')
})

/** Sets `window.wasLost` when the page shows that its connection is lost. */
const watchForLoss = `new MutationObserver(() => {
  if (document.querySelector('.connection.lost')) window.wasLost = true
}).observe(document.body, { subtree: true, childList: true, attributes: true })`

interface Listed {
  username: string
  user?: string
}

async function ofUser(hub: TestHub, user: string): Promise<Listed[]> {
  return (await hub.ask<Listed[]>('credentials.list')).filter((credential) => credential.user === user)
}

function ofStrangers(hub: TestHub): Promise<Listed[]> {
  return ofUser(hub, 'stranger')
}

function restarted(t: Parameters<typeof startTestHub>[0], hub: TestHub): Promise<TestHub> {
  const ports = { HUB_HTTPS_PORT: `${hub.httpsPort}`, HUB_MQTT_PORT: `${hub.mqttPort}` }
  return startTestHub(t, ports, hub.home)
}
