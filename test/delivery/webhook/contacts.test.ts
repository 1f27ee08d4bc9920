import pino from 'pino'
import t from 'tap'
import { createContactMail } from '../../../bridge-https/users/contact-mail.ts'
import { createContacts } from '../../../delivery/webhook/contacts.ts'
import { createPushSubscriptions } from '../../../delivery/webhook/subscriptions.ts'
import { startMailServer } from '../../bridge-https/users/mail-server.ts'
import { createSharedSpace } from '../../shared-store.ts'
import { createMemoryStore } from '../memory-store.ts'

async function open(memory = createMemoryStore()) {
  const { store } = memory
  const subscriptions = await createPushSubscriptions({ store, serviceAccount: 'a@b', clock: Date.now })
  const told: string[] = []
  const nodes = (self: string, living: string[], send = async (name: string) => void told.push(name)) =>
    createContacts({
      subscriptions,
      self,
      log: pino({ level: 'silent' }),
      isLiving: (node) => living.includes(node),
      onChange: () => undefined,
      isOwn: () => true,
      send: ({ name }) => send(name),
    })
  return { memory, subscriptions, told, nodes }
}

async function openWithDisabled(teller: string) {
  const one = await open()
  const added = await one.subscriptions.add({
    topicId: 'urn:org:permanent-livestream:1',
    institutionId: 'urn:org:institution:1',
    createdBy: 'u',
    url: 'https://hooks.example/',
    contact: 'a@b.example',
  })
  const name = added?.name ?? ''
  await one.subscriptions.disable(name, teller)
  return { ...one, name }
}

t.test('a contact is told once', async (t) => {
  const { nodes, told, name } = await openWithDisabled('a')
  await nodes('a', ['a', 'b']).tell(name)
  await nodes('b', ['a', 'b']).takeOver()
  await nodes('b', ['b']).takeOver()
  await nodes('a again', ['a again', 'b']).takeOver()
  t.same(told, [name])
})

t.test('a contact is told once, also if the store fails then', async (t) => {
  const { nodes, told, memory, subscriptions, name } = await openWithDisabled('a')
  let refused = 0
  memory.judge(() => (refused++ === 0 ? 'refused' : 'stored'))
  // The pause before the next try does not keep the process alive.
  const alive = setInterval(() => undefined, 1_000)
  t.teardown(() => clearInterval(alive))
  await nodes('a', ['a', 'b']).tell(name)
  t.equal(subscriptions.find(name)?.toldBy, undefined, 'the end of the duty is stored')
  await nodes('b', ['b']).takeOver()
  t.same(told, [name])
})

t.test('what a node left untold is told by another, once', async (t) => {
  const { nodes, told, name } = await openWithDisabled('a')
  await nodes('b', ['a', 'b']).takeOver()
  t.same(told, [], 'it may still be about it')
  await Promise.all(['b', 'c'].map((self) => nodes(self, ['b', 'c']).takeOver()))
  t.same(told, [name])
})

t.test('a single node that was killed tells it after its next start', async (t) => {
  const { nodes, told, memory, name } = await openWithDisabled('only')
  await nodes('only', ['only']).takeOver()
  t.same(told, [])
  const again = await open(memory.crashed())
  await again.nodes('only again', ['only again']).takeOver()
  t.same(again.told, [name])
  await again.nodes('only again', ['only again']).takeOver()
  t.same(again.told, [name])
})

t.test('nobody is told of one that was enabled meanwhile', async (t) => {
  const { subscriptions, nodes, told, name } = await openWithDisabled('a')
  await subscriptions.enable(name)
  await nodes('b', ['b']).takeOver()
  t.same(told, [])
  t.notOk(subscriptions.find(name)?.toldBy)
})

t.test('the mail goes to one address, has no secret, and its failure is logged', async (t) => {
  const server = await startMailServer(t)
  const lines: { msg?: string }[] = []
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) })
  const mailTo = (port: number) =>
    createContactMail({
      server: { host: '127.0.0.1', port, secure: false, from: 'hub@hub.example' },
      log,
      publicUrl: () => 'https://hub.example',
    })
  const disabled = {
    name: 'de.org.hub.subscription.1',
    topicId: 'urn:org:permanent-livestream:1',
    url: 'https://hooks.example:8443/path-secret?token=query-secret',
    contact: 'studio@radio.example\r\nBcc: other@elsewhere.example, third@elsewhere.example',
  }
  await mailTo(server.port)?.({ ...disabled, contact: 'studio@radio.example' })
  const mail = await server.next()
  t.same(mail.to, ['studio@radio.example'])
  t.match(mail.text, 'de.org.hub.subscription.1')
  t.match(mail.text, 'hooks.example:8443')
  t.notMatch(mail.text, /secret/)
  await mailTo(server.port)?.(disabled)
  const sent = server.count() > 1 ? await server.next() : undefined
  t.ok((sent?.to.length ?? 0) <= 1, 'to nobody else')
  t.notMatch(sent?.text, /^Bcc:/im, 'no header of its own')
  await mailTo(1)?.(disabled)
  t.equal(lines.at(-1)?.msg, 'contact not mailed')
  t.equal(createContactMail({ server: undefined, log, publicUrl: () => '' }), undefined)
})

t.test('an address gets three mails an hour, however many subscriptions name it', async (t) => {
  const server = await startMailServer(t)
  const lines: { msg?: string }[] = []
  const space = createSharedSpace()
  const open = () => {
    const store = space.openFollowed(t)
    store.start()
    return createContactMail({
      store,
      publicUrl: () => 'https://hub.example',
      server: { host: '127.0.0.1', port: server.port, secure: false, from: 'hub@hub.example' },
      log: pino({}, { write: (line: string) => lines.push(JSON.parse(line)) }),
    })
  }
  const [a, b] = [open(), open()]
  const disabled = (number: number, contact: string) => ({
    name: `de.org.hub.subscription.${number}`,
    contact,
    topicId: `urn:org:permanent-livestream:${number}`,
    url: 'https://hooks.example/',
  })
  for (const number of [1, 2, 3, 4]) await a?.(disabled(number, 'studio@radio.example'))
  t.equal(server.count(), 3)
  t.match(lines.at(-1), { msg: 'contact not mailed', subscription: 'de.org.hub.subscription.4' })
  for (let number = 5; lines.at(-1)?.msg === 'contact mailed' || number === 5; number++)
    await b?.(disabled(number, 'Studio@Radio.example'))
  t.ok(server.count() <= 6, 'on all nodes together, as soon as they have heard of it')
  await a?.(disabled(9, 'other@radio.example'))
  t.equal(lines.at(-1)?.msg, 'contact mailed')
  t.match((await server.next()).text, /GET https:\/\/hub.example\/subscriptions/)
})
