import { fileURLToPath } from 'node:url'
import t from 'tap'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, playingTopic, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { createBrowser, skip } from '../../web/browser.ts'

const mqttBundle = fileURLToPath(new URL('./dist/mqtt.min.js', import.meta.resolve('mqtt/package.json')))
const [own = ''] = institutions
const browser = createBrowser(t)

/** The global variable that mqtt.js defines in a page. */
interface Page {
  mqtt: {
    connect(
      url: string,
      options: object,
    ): {
      on(event: string, listener: (...values: never[]) => void): void
      subscribe(filter: string, options: object): void
      end(force: boolean): void
    }
  }
}

t.test('mqtt.js in Chromium receives a retained event over wss', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const report = await publisher.publish(playing(station()))
  const page = await browser.blank(t, hub)
  // The page does not come from the hub. It can connect all the same: the hub checks no origin for MQTT over WebSocket.
  await page.addScriptTag({ path: mqttBundle })
  const login = await hub.subscriber('radio/#')
  const seen = await page.evaluate(
    ([url = '', username = '', secret = '']) =>
      new Promise<{ topic: string; payload: string; retain: boolean }>((resolve, reject) => {
        const { mqtt } = globalThis as unknown as Page
        const client = mqtt.connect(url, {
          username,
          password: secret,
          protocolVersion: 4,
          reconnectPeriod: 0,
        })
        client.on('connect', () => client.subscribe('radio/+/track/playing', { qos: 1 }))
        client.on('error', (error: Error) => reject(error))
        client.on('message', (topic: string, payload: Uint8Array, { retain }: { retain: boolean }) => {
          client.end(true)
          resolve({ topic, payload: new TextDecoder().decode(payload), retain })
        })
      }),
    [`wss://localhost:${hub.httpsPort}/mqtt`, login.username, login.password],
  )
  t.equal(seen.topic, playingTopic(station()))
  t.equal(seen.retain, true)
  t.match(JSON.parse(seen.payload), { id: report.id, title: 'Morgenlicht' })
})

t.test('a person chooses a password by the link', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { email } = await addUser(hub, api, own)
  const { resetUrl } = await hub.ask<{ resetUrl: string }>('users.reset-password', { email })
  const page = await browser.blank(t, hub)
  const problems: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`${message.text()} ${message.location().url}`)
  })
  await page.goto(resetUrl)
  await page.fill('#password', 'chosen in the browser')
  await page.click('button')
  await page.getByText('Your password is set').waitFor()
  t.same(
    problems.filter((problem) => !problem.endsWith('/favicon.ico')),
    [],
  )
  const logIn = (secret: string) => api.call('POST', '/auth/login', { body: { email, password: secret } })
  t.equal((await logIn('chosen in the browser')).status, 200)
  t.equal((await logIn(password)).status, 401)

  await page.goto(`https://localhost:${hub.httpsPort}/docs/?from=a-link`)
  await page.getByText('/events/{eventName}').first().waitFor()
  t.pass('the page of the description shows the routes, within its policy')
})
