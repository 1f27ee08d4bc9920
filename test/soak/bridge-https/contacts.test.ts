import t, { type Test } from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { startMailServer } from '../../bridge-https/users/mail-server.ts'
import { writeConfig } from '../../bridge-https/users/write-config.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { createBrowser, logIn, skip } from '../../web/browser.ts'

/*
 * Mails to the contact of an institution (open.md §7), through a real mail server: confirmed first, plain, and ended by a
 * link.
 */

const [own = '', other = ''] = institutions
const browser = createBrowser(t)
const email = 'studio@kuestenfunk.example'

async function start(t: Test) {
  const mail = await startMailServer(t)
  const smtp = { host: '127.0.0.1', port: mail.port, from: 'hub@hub.example' }
  const hub = await startTestHub(t, { HUB_CONFIG: await writeConfig(t, { smtp }) })
  const api = await openApi(t, hub)
  const set = (to = email, institution = own) => hub.ask('institutions.contact', { institution, email: to })
  const tokenIn = (text: string, page: string) =>
    new RegExp(`https://localhost:${hub.httpsPort}/contact/${page}#token=([\\w-]{43})`).exec(text)?.[1] ?? ''
  const post = (page: string, token: unknown) => api.call('POST', `/contact/${page}`, { body: { token } })
  const states = async () =>
    (await hub.ask<{ state: string }[]>('institutions.contacts')).map(({ state }) => state)
  const publisher = async (institution = own) =>
    connectPublisher(t, hub, await hub.publisher([institution]), institution)
  return { mail, hub, api, set, tokenIn, post, states, publisher }
}

t.test('a refused event is mailed with what mends it, once the address is confirmed', async (t) => {
  const { mail, hub, set, tokenIn, post, states, publisher } = await start(t)
  const studio = await publisher()
  t.match(await set(), { institutionId: own, email, state: 'unconfirmed' })
  const asked = await mail.next()
  t.match(asked, { to: [email], from: 'hub@hub.example' })
  t.match(asked.text, own)
  await studio.publish(playing(station(), { length: 0, title: 'Before' }))
  const token = tokenIn(asked.text, 'confirm')
  t.match(await post('confirm', `${token.slice(0, -1)}-`), {
    status: 400,
    json: { errors: [{ path: '.body.token' }] },
  })
  t.match(await post('confirm', token), { status: 200 })
  t.same(await states(), ['confirmed'])
  const hostile = 'Titel\r\nBcc: victim@b.example\r\n\r\n<b>'
  await studio.publish(playing(station(), { length: 0, title: hostile, [hostile]: 1 }))
  const told = await mail.next()
  t.match(told.to, [email])
  t.match(told.text, /Subject: Now-playing hub: events refused/)
  t.match(told.text, /List-Unsubscribe:\s+</)
  t.match(told.text, /Auto-Submitted: auto-generated/i)
  t.match(told.text, /Content-Type: text\/plain/)
  t.match(told.text.replace(/\n/g, ' '), /send a number greater than 0/)
  t.notMatch(told.text, /^Bcc:/m)
  t.notMatch(told.text, /Before/)
  t.equal(mail.count(), 2, 'one to confirm, one that tells')
  t.match(await post('unsubscribe', tokenIn(told.text, 'unsubscribe')), { status: 200 })
  t.same(await states(), ['unsubscribed'])
  const entries = await hub.ask<{ who: string; action: string; detail: unknown }[]>('audit')
  t.match(
    entries.filter(({ action }) => action === 'institutions.contact'),
    [
      { detail: { email } },
      { who: email, detail: { state: 'confirmed' } },
      { who: email, detail: { state: 'unsubscribed' } },
    ],
  )
})

t.test('who may set a contact, and what is no contact', async (t) => {
  const { mail, hub, api, set, publisher } = await start(t)
  for (const wrong of [
    'a@b.example\r\nBcc: c@d.example',
    'a@b.example, c@d.example',
    'a',
    `${'a'.repeat(250)}@b.example`,
  ])
    await t.rejects(set(wrong), { message: /email must be an e-mail address/ })
  await t.rejects(set(email, 'urn:org:institution:unknown'), { message: /there is no institution/ })
  const { token } = await addUser(hub, api, own)
  t.match(
    await api.call('POST', '/operate/institutions.contact', { token, body: { institution: own, email } }),
    {
      status: 403,
    },
  )
  for (let n = 0; n < 3; n++) await set()
  await t.rejects(set(), { message: /three of these mails within the hour/ })
  await set('other@b.example', other)
  const asked = [await mail.next(), await mail.next(), await mail.next(), await mail.next()]
  t.equal(asked.length, mail.count())
  t.match(await hub.ask('institutions.remove-contact', { institution: own }), { removed: true })
  await t.rejects(hub.ask('institutions.remove-contact', { institution: own }), {
    message: /there is no contact/,
  })
  await (await publisher()).publish(playing(station(), { length: 0 }))
  await hub.close()
  t.equal(mail.count(), 4, 'nothing without a contact')
})

t.test('an institution sees, sets and removes its own contact, and no other', async (t) => {
  const { mail, hub, api, set, tokenIn, post } = await start(t)
  await set('secret@b.example', other)
  await mail.next()
  const { token, email: who } = await addUser(hub, api, own)
  const shown = async () => (await api.call('GET', '/institution/contact', { token })).json
  const name = (body: object) => api.call('POST', '/institution/contact', { token, body })
  t.same(await shown(), { email: null, state: null, setAt: null })
  t.match(await name({ email: 'a@b.example\r\nBcc: c@d.example' }), {
    status: 400,
    json: { errors: [{ path: '.body.email' }] },
  })
  t.match(await name({ email, institution: other }), { status: 400 })
  t.match(await name({ email }), { status: 200, json: { institutionId: own, email, state: 'unconfirmed' } })
  const asked = await mail.next()
  t.match(asked.to, [email])
  t.match(await post('confirm', tokenIn(asked.text, 'confirm')), { status: 200 })
  t.match(await shown(), { email, state: 'confirmed' })
  t.match(await name({ email: 'new@b.example' }), { status: 200 })
  t.match(await shown(), { email: 'new@b.example', state: 'unconfirmed' })
  t.match(await name({ email: 'third@b.example' }), { status: 200 })
  t.match(await name({ email: 'fourth@b.example' }), {
    status: 409,
    json: { message: /your institution had three of these mails within the hour/ },
  })
  t.match(await shown(), { email: 'third@b.example' })
  const remove = (body: object = {}) => api.call('POST', '/institution/contact/remove', { token, body })
  t.match(await remove({ institution: other }), { status: 400 })
  const reader = await addUser(hub, api, own, { permissions: ['subscribe'] })
  t.match(
    await api.call('POST', '/institution/contact/remove', { token: reader.token, body: {} }),
    { status: 403 },
    'it needs the permission to publish, as setting does',
  )
  t.match(await shown(), { email: 'third@b.example' })
  t.match(await remove(), { status: 200, json: { institutionId: own, removed: true } })
  t.same(await shown(), { email: null, state: null, setAt: null })
  t.match(await remove(), { status: 404 })
  const contacts = await hub.ask<{ institutionId: string; email: string }[]>('institutions.contacts')
  t.equal(contacts.find(({ institutionId }) => institutionId === other)?.email, 'secret@b.example')
  const entries = await hub.ask<{ action: string }[]>('audit')
  t.match(
    entries.filter(({ action }) => action === 'contact.set'),
    [email, 'new@b.example', 'third@b.example'].map((email) => ({ who, target: own, detail: { email } })),
  )
  t.match(
    entries.filter(({ action }) => action === 'contact.remove'),
    [{ who, target: own, detail: { email: 'third@b.example' } }],
  )
})

t.test('without a mail server nobody becomes a contact, and one that is away is said', async (t) => {
  const hub = await startTestHub(t)
  const contact = { institution: own, email }
  await t.rejects(hub.ask('institutions.contact', contact), { message: /no mail server is configured/ })
  t.same(await hub.ask('institutions.contacts'), [])
  const smtp = { host: '127.0.0.1', port: 1, from: 'hub@hub.example' }
  const away = await startTestHub(t, { HUB_CONFIG: await writeConfig(t, { smtp }) })
  await t.rejects(away.ask('institutions.contact', contact), { message: /was not mailed: .*Set it again/s })
  t.match(await away.ask('institutions.contacts'), [{ state: 'unconfirmed' }])
})

t.test('a user sets and removes the contact of the institution in the console', { skip }, async (t) => {
  const { mail, hub, api, states } = await start(t)
  const user = await addUser(hub, api, own, { permissions: ['publish'] })
  const { page, problems } = await browser.open(t, hub, '/console/own-contact')
  await logIn(page, user.email)
  await page.getByRole('button', { name: 'Set a contact' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('gets no more mails').waitFor()
  await dialog.getByLabel('E-mail address').fill(email)
  await dialog.getByRole('button', { name: 'Set a contact' }).click()
  await page.getByText(`${email} gets mails once it is confirmed`).waitFor()
  await page.getByText('unconfirmed', { exact: true }).waitFor()
  t.match((await mail.next()).to, [email])
  t.same(await states(), ['unconfirmed'])
  await page.getByRole('button', { name: 'Remove' }).click()
  await dialog.getByText(`${email} gets no more mails, and is forgotten.`).waitFor()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Remove' }).waitFor({ state: 'detached' })
  t.same(await states(), [])
  t.same(problems, [])
})

t.test('the pages behind the links, in a browser', { skip }, async (t) => {
  const { mail, hub, set, tokenIn, states } = await start(t)
  await set()
  const { text } = await mail.next()
  const { page, problems } = await browser.open(t, hub, `/contact/confirm#token=${tokenIn(text, 'confirm')}`)
  t.same(await states(), ['unconfirmed'], 'looking at the page confirms nothing')
  await page.getByRole('button', { name: 'Mail them to me' }).click()
  await page.getByText('The address is confirmed.').waitFor()
  t.same(await states(), ['confirmed'])
  await page.goto(`https://localhost:${hub.httpsPort}/contact/unsubscribe`)
  await page.getByText('This link is not complete.').waitFor()
  t.same(problems, [])
})
