import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { storeKeys } from '../../../store/keys.ts'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { gapsAsText } from '../../../watch/gaps.ts'
import { type Api, addUser, openApi, password } from '../../bridge-https/api.ts'
import { startMailServer } from '../../bridge-https/users/mail-server.ts'
import { writeConfig } from '../../bridge-https/users/write-config.ts'
import { institutions, playing, station } from '../../events.ts'
import { passingClockOf } from '../../moving-clock.ts'
import { letTimePass } from '../../passing-time.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, onStore, openStoreOf, type StoreSettings } from '../../stores.ts'
import { until } from '../../until.ts'
import { findNothing } from '../../web/axe.ts'
import { createBrowser, skip } from '../../web/browser.ts'

/*
 * Silence on whole hubs (open.md §7), with events over HTTPS: the clock of all nodes in this process is moved. They know
 * from before that the livestreams usually have an event each four minutes.
 */

const time = letTimePass()
const browser = createBrowser(t)
const [own = '', other = ''] = institutions
const [a, b] = [station(0, 0), station(0, 1)]
const contact = 'studio@kuestenfunk.example'
const metricsToken = 'a-secret-of-metrics'
const days = 24 * 3600_000

/**
 * A hub that has known for nine days how often its livestreams have events, and whose institution has a contact. `from`: the
 * institution that their events came from.
 */
async function start(t: Test, store: StoreSettings, from = own) {
  const home = await temporaryDirectory(t)
  await learn(store, join(home, 'data'), [a, b], from)
  const mail = await startMailServer(t)
  const smtp = { host: '127.0.0.1', port: mail.port, from: 'hub@hub.example' }
  const env = { ...store, HUB_CONFIG: await writeConfig(t, { smtp }), HUB_METRICS_TOKEN: metricsToken }
  const hub = await startTestHub(t, env, home)
  const api = await openApi(t, hub)
  const confirm = async (institution: string, email: string) => {
    await hub.ask('institutions.contact', { institution, email })
    const [, token] = /confirm#token=([\w-]{43})/.exec((await mail.next()).text) ?? []
    await api.call('POST', '/contact/confirm', { body: { token } })
  }
  await confirm(own, contact)
  const { email } = await addUser(hub, api, own)
  return { hub, env, mail, api, email, confirm }
}

async function learn(
  store: StoreSettings,
  dataDir: string,
  livestreams = [a, b],
  institutionId = own,
): Promise<void> {
  await mkdir(dataDir, { recursive: true })
  const opened = await openStoreOf(store, dataDir)
  const now = Date.now()
  const gaps = { minutes: new Uint16Array(168).fill(4), hour: Math.floor(now / 3600_000) }
  const heard = {
    institutionId,
    gaps: gapsAsText(gaps),
    hour: gaps.hour,
    since: now - 9 * days,
    at: now,
  }
  const value = JSON.stringify(heard)
  await opened.commit(
    livestreams.map(({ id }) => ({ put: storeKeys.heard.prefix + encodeURIComponent(id), value })),
  )
  await opened.close()
}

/** Publishes an event for each of these livestreams. A token lasts for an hour only. */
async function speak(api: Api, email: string, ...livestreams: Livestream[]): Promise<void> {
  const { json } = await api.call('POST', '/auth/login', { body: { email, password } })
  for (const livestream of livestreams) {
    const start = new Date(Date.now()).toISOString()
    const { event, ...body } = playing(livestream, { start, playlistItemId: start })
    const publish = () => api.call('POST', `/events/${event}`, { token: String(json.token), body })
    const answer = await publish()
    // The first event of a livestream makes its topic.
    if (Object(answer.json.statuses).failed === 1) await publish()
    else if (answer.status !== 201) throw new Error(`an event got ${answer.status} ${answer.text}`)
  }
}

/** What each place says of the silent livestreams, as their ids. */
async function silentAt(hub: Awaited<ReturnType<typeof startTestHub>>, api: Api, email: string) {
  const { json } = await api.call('POST', '/auth/login', { body: { email, password } })
  const token = String(json.token)
  const newest = await hub.ask<{ livestream: { id: string }; silentSince: string | null }[]>('events.newest')
  const owned = (await api.call('GET', '/institution/livestreams', { token })).json
  const listed = (await api.call('GET', '/livestreams/silent', { token })).json
  const { text } = await api.call('GET', '/metrics', { token: metricsToken })
  return {
    hubctl: newest.filter(({ silentSince }) => silentSince !== null).map(({ livestream }) => livestream.id),
    institution: (owned as unknown as { livestreamId: string; state: string }[])
      .filter(({ state }) => state === 'silent')
      .map(({ livestreamId }) => livestreamId),
    page: (listed.livestreams as { id: string }[]).map(({ id }) => id),
    metric: Number(/^hub_silent_livestreams (\d+)/m.exec(text)?.[1]),
  }
}

const everywhere = (...ids: string[]) => ({ hubctl: ids, institution: ids, page: ids, metric: ids.length })

onEachStore(
  'a livestream that falls silent is marked everywhere, mailed once, and heard again',
  async (t, store) => {
    const { hub, mail, api, email } = await start(t, store)
    await speak(api, email, a, b)
    time.pass(8)
    await speak(api, email, b)
    t.same(await silentAt(hub, api, email), everywhere())
    time.pass(3)
    t.same(await silentAt(hub, api, email), everywhere(a.id))
    const told = await mail.next()
    t.same(told.to, [contact])
    t.match(told.text, /1 livestream silent/)
    t.match(told.text, a.id)
    t.notMatch(told.text, b.id)
    time.pass(3)
    t.equal(mail.count(), 2, 'one to confirm, one that tells')
    await speak(api, email, a, b)
    t.same(await silentAt(hub, api, email), everywhere())
    const lines = hub.lines.filter(({ livestream }) => livestream === a.id).map(({ msg }) => msg)
    t.match(lines, ['a livestream is silent', 'a livestream speaks again'])
  },
)

t.test('of a livestream that changed hands, its institution is mailed, and not the former one', async (t) => {
  const { hub, mail, confirm } = await start(t, {}, other)
  await confirm(other, 'studio@bergland.example')
  time.pass(11)
  const told = await mail.next()
  t.same(told.to, [contact])
  t.match(told.text, /2 livestreams silent/)
  await hub.close()
  t.equal(mail.count(), 3, 'two to confirm, one that tells')
})

onStore('redis', 'two nodes mark the same livestream, and mail once', async (t, store) => {
  const one = await start(t, store)
  const two = await startTestHub(t, one.env)
  const other = await openApi(t, two)
  await speak(one.api, one.email, a)
  await speak(other, one.email, b)
  time.pass(8)
  await speak(other, one.email, b)
  const both = [
    [one.hub, one.api],
    [two, other],
  ] as const
  for (const [hub, api] of both) t.same(await silentAt(hub, api, one.email), everywhere())
  time.pass(3)
  for (const [hub, api] of both) t.same(await silentAt(hub, api, one.email), everywhere(a.id))
  t.match((await one.mail.next()).text, /1 livestream silent/)
  await one.hub.close()
  // The other one leads, and finds `b` silent, too. No time may pass while it mails: its mail client would take that for
  // a server that does not answer.
  const isSilent = () =>
    two.lines.some(({ msg, livestream }) => msg === 'a livestream is silent' && livestream === b.id)
  await two.until(async () => {
    if (!isSilent()) time.pass(1)
    return isSilent()
  })
  const mailed = one.hub.lines.find(({ msg }) => msg === 'contact of an institution mailed')
  time.pass(Math.ceil((Number(mailed?.time) + 15 * 60_000 - Date.now()) / 60_000))
  await two.until(async () => {
    time.look()
    return one.mail.count() === 3
  })
  const { text } = await one.mail.next()
  t.match(text, b.id)
  t.notMatch(text, a.id, 'told by the one before')
})

t.test(
  'the on-air page says since when a livestream is silent, until it speaks again',
  { skip },
  async (t) => {
    const { hub, api, email } = await start(t, {})
    await speak(api, email, a, b)
    const spoken = Date.now()
    time.pass(8)
    await speak(api, email, b)
    time.pass(3)
    const { page, problems } = await browser.open(t, hub)
    const card = page.getByRole('listitem').filter({ hasText: a.title }).first()
    const mark = card.getByText(/^Silent since /)
    await mark.waitFor()
    const clock = await page.evaluate<string>(
      `new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' }).format(${spoken})`,
    )
    t.match(await mark.textContent(), clock)
    t.equal(await page.getByText(/^Silent since /).count(), 1, 'no other livestream is')
    await findNothing(t, page, 'silent-board')
    await card.getByRole('link').click()
    await page
      .locator('.hero')
      .getByText(/^Silent since /)
      .waitFor()
    await findNothing(t, page, 'silent-livestream')
    await speak(api, email, a)
    await page.getByText(/^Silent since /).waitFor({ state: 'detached' })
    t.same(problems, [])
  },
)

t.test('a hub that is killed while it mails sends nothing twice', async (t) => {
  const home = await temporaryDirectory(t)
  await learn({}, join(home, 'data'), [a])
  const clock = join(home, 'clock')
  const goTo = (minutes: number) => writeFile(clock, String(minutes * 60_000))
  await goTo(0)
  const mail = await startMailServer(t)
  const smtp = { host: '127.0.0.1', port: mail.port, from: 'hub@hub.example' }
  const env = { HUB_CONFIG: await writeConfig(t, { smtp }), NODE_OPTIONS: passingClockOf(clock) }
  const run = async () => {
    const hub = await spawnHub(t, home, env)
    const ask = <Result>(command: string, args: Record<string, unknown> = {}) =>
      askNode<Result>(hub.adminSocket, command, args)
    const api = await openApi(t, hub)
    return { ...hub, ask, api, ...(await addUser({ ask }, api, own)) }
  }
  const one = await run()
  await one.ask('institutions.contact', { institution: own, email: contact })
  const [, link] = /confirm#token=([\w-]{43})/.exec((await mail.next()).text) ?? []
  await one.api.call('POST', '/contact/confirm', { body: { token: link } })
  await speak(one.api, one.email, a)
  mail.answer(false)
  // A pause of the machine counts as one of the hub: then silence counts anew.
  await goTo(45)
  t.match((await mail.next()).text, a.id)
  await one.stop('SIGKILL')

  mail.answer(true)
  const two = await run()
  await goTo(90)
  await until(async () => {
    const newest = await two.ask<{ silentSince: string | null }[]>('events.newest')
    return newest.some(({ silentSince }) => silentSince !== null)
  })
  const { event, ...body } = playing(a, { length: 0 })
  const { json } = await two.api.call('POST', '/auth/login', { body: { email: two.email, password } })
  await two.api.call('POST', `/events/${event}`, { token: String(json.token), body })
  const { text } = await mail.next()
  t.match(text, /Subject: Now-playing hub: events refused/)
  t.notMatch(text, a.id)
  await two.stop('SIGTERM')
  t.equal(mail.count(), 3, 'one to confirm, and two that tell')
})
