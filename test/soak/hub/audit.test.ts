import { existsSync, readFileSync } from 'node:fs'
import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { AuditEntry } from '../../../admin/audit.ts'
import { operations } from '../../../operations/operations.ts'
import { startMailServer } from '../../bridge-https/users/mail-server.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { playing, playingTopic, station } from '../../events.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'
import { startWithWebhook } from '../delivery/webhook/one-webhook.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

const email = 'kim@radio.example'
const message = /^nothing was changed: the audit log cannot be written \(ENOSPC: no space left on device/

/** Commands that change something. `username` is that of the first test's publisher. */
const changesOf = (username: string): [command: string, args: Record<string, unknown>][] => [
  ['credentials.add', { role: 'subscriber', label: 'x', filters: ['radio/#'] }],
  ['credentials.rotate', { username, revokeAfter: 1 }],
  ['credentials.revoke', { username }],
  ['users.add', { email: 'sam@radio.example', institution }],
  ['users.remove', { email }],
  ['users.reset-password', { email }],
  ['institutions.contact', { institution, email: 'other@radio.example' }],
  ['institutions.remove-contact', { institution }],
  ['keys.rotate', { dropOld: true }],
  ['lifecycle.announce', { track: 'publish', sunset: '2020-01-01', link: 'https://hub.example/end' }],
  ['lifecycle.brownout', { track: 'push', for: 600 }],
  ['lifecycle.retire', { track: 'push' }],
  ['retained.clear', { topic: playingTopic(livestream) }],
  ['clients.disconnect', { clientId: 'kept' }],
  ['sessions.drop', { clientId: 'kept' }],
  ['bans.add', { kind: 'client', value: 'kept', for: 60, reason: 'r' }],
  ['bans.remove', { value: '192.0.2.7' }],
  ['trace', { clientId: 'kept', for: 0.1, whole: true }],
  ['feed.refresh', {}],
  ['outputs.test', { name: 'dab', livestream: livestream.id }],
]

/** Commands that change something about a webhook that is not paused. */
const changesOfWebhook = (name: string): [command: string, args: Record<string, unknown>][] => [
  ['subscriptions.pause', { name }],
  ['subscriptions.test', { name }],
  ['subscriptions.remove', { name }],
  ['subscriptions.remove-secrets', { name }],
  ['queues.replay', { name, since: '2020-01-01T00:00:00Z' }],
]
const changesOfPaused = (name: string): [command: string, args: Record<string, unknown>][] => [
  ['subscriptions.resume', { name }],
  ['subscriptions.remove', { name }],
]

/** The tests of these commands look at their audit entries. */
const elsewhere = ['import.aedes-redis', 'store.accept']

t.test('every command that changes something is here', async (t) => {
  const names = [...changesOf(''), ...changesOfWebhook(''), ...changesOfPaused('')].map(([name]) => name)
  const changing = Object.entries(operations).flatMap(([name, { effect }]) =>
    effect === 'none' ? [] : [name],
  )
  t.same([...new Set([...names, ...elsewhere])].sort(), changing.sort())
})

onEachStore('no change is made that the audit log cannot take', async (t, store) => {
  const home = await temporaryDirectory(t)
  const config = join(home, 'hub.json')
  const file = join(home, 'one.dls')
  const output = { name: 'dab', driver: 'dl-plus', file: join(home, '{name}.dls') }
  const outputs = [{ ...output, livestreams: { [livestream.id]: 'one' } }]
  const mail = await startMailServer(t)
  const smtp = { host: '127.0.0.1', port: mail.port, from: 'hub@hub.example' }
  await writeFile(config, JSON.stringify({ outputs, smtp }))
  const hub = await startTestHub(t, { ...store, HUB_CONFIG: config }, home)
  const login = await hub.publisher([institution])
  const { username } = login
  const publisher = await connectPublisher(t, hub, login, institution)
  await publisher.publish(playing(livestream))
  const kept = { clientId: 'kept', clean: false }
  await connect(t, hub, await hub.subscriber('radio/#'), kept)
  await hub.ask('users.add', { email, institution })
  await hub.ask('institutions.contact', { institution, email })
  await hub.ask('bans.add', { kind: 'address', value: '192.0.2.7', for: 3600, reason: 'r' })
  await hub.ask('lifecycle.announce', {
    track: 'push',
    sunset: '2020-01-01',
    link: 'https://hub.example/end',
  })
  const log = join(hub.home, 'data', 'audit.log')
  const state = async () => {
    const [sessions] = await hub.ask<{ clientId: string; connected: boolean }[]>('sessions.list')
    return {
      credentials: await hub.ask('credentials.list'),
      users: await hub.ask('users.list'),
      contacts: await hub.ask('institutions.contacts'),
      bans: await hub.ask('bans.list'),
      keys: await hub.ask('keys.list'),
      lifecycle: await hub.ask('lifecycle.status'),
      retained: await hub.ask('retained.list'),
      connected: sessions?.connected,
      shown: readFileSync(file, 'utf8'),
    }
  }
  await hub.until(async () => existsSync(file))
  const before = await state()
  await rm(log)
  // A write to /dev/full fails as on a full disk.
  await symlink('/dev/full', log)
  for (const [command, args] of changesOf(username))
    await t.rejects(hub.ask(command, args), { message }, command)
  await rm(log)
  t.same(await state(), before)
  t.equal(mail.count(), 1, 'the contact before was mailed')

  await hub.ask('credentials.revoke', { username })
  await t.rejects(hub.ask('sessions.drop', { clientId: 'nobody' }), { message: /no session/ })
  await t.rejects(hub.ask('lifecycle.retire', { track: 'publish' }), { message: /announced first/ })
  const entries = await hub.ask<AuditEntry[]>('audit')
  t.match(entries.slice(-3), [
    { action: 'credentials.revoke', target: username, detail: null },
    { action: 'lifecycle.retire', target: 'publish', detail: { state: 'gone' } },
    { action: 'lifecycle.retire', target: 'publish', detail: { failed: 'publish must be announced first' } },
  ])
})

onEachStore('nothing is done to a webhook that the audit log cannot take', async (t, store) => {
  const { home, ask, call, name, queue, receiver } = await startWithWebhook(t, store)
  await call('POST', `/subscriptions/${name}/secret`)
  const log = join(home, 'data', 'audit.log')
  for (const changes of [changesOfWebhook(name), changesOfPaused(name)]) {
    const state = async () => [await ask('subscriptions.show', { name }), await queue()]
    const before = await state()
    await rm(log)
    await symlink('/dev/full', log)
    for (const [command, args] of changes) {
      await t.rejects(ask(command, args), { message }, command)
    }
    await rm(log)
    t.same(await state(), before)
    if (changes[0]) await ask(...changes[0])
  }
  t.same(receiver.received, [], 'nothing was sent')
})

onEachStore('a scheduled revocation that cannot be noted is logged, and noted later', async (t, store) => {
  const home = await temporaryDirectory(t)
  const hub = await startTestHub(t, store, home)
  const { username } = await hub.subscriber('radio/#')
  const log = join(home, 'data', 'audit.log')
  await hub.ask('credentials.rotate', { username, revokeAfter: 5 })
  await rm(log)
  await symlink('/dev/full', log)
  const failed = ({ msg }: Record<string, unknown>) =>
    /^scheduled revocation not in the audit log/.test(`${msg}`)
  await hub.until(async () => hub.lines.some(failed))
  t.match(hub.lines.find(failed), { level: 50, username, err: { message: /ENOSPC/ } })
  await hub.close()
  await rm(log)
  const again = await startTestHub(t, store, home)
  await again.until(async () => (await again.ask<object[]>('credentials.list')).length === 1)
  t.match((await again.ask<AuditEntry[]>('audit')).at(-1), {
    who: 'hub',
    action: 'credentials.revoke',
    target: username,
    detail: { reason: 'the time set by its rotation has come' },
  })
})
