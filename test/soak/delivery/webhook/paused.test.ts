import type { ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { AuditEntry } from '../../../../admin/audit.ts'
import { institutions, station } from '../../../events.ts'
import { onEachStore } from '../../../stores.ts'
import { nearlyAnHour, startWithWebhook as start, titles } from './one-webhook.ts'

/*
 * An operator pauses, resumes and removes the subscription of an institution (design.md §4).
 */

type Started = Awaited<ReturnType<typeof start>>

const pausedForOwner = { state: 'disabled', reason: 'paused by the operator' }

/** The entries of the audit log about subscriptions. */
const audited = async ({ ask }: Started) =>
  (await ask<AuditEntry[]>('audit')).filter(({ action }) => action.startsWith('subscriptions.'))

onEachStore('a paused webhook gets nothing until it is resumed, then all in order', async (t, store) => {
  const one = await start(t, store)
  const { receiver, ask, call, name, publish, queue, restart, shown } = one
  t.same(await ask('subscriptions.pause', { name }), { name, paused: true })
  await publish('One')
  t.match(await queue(), { state: 'paused', pending: 1 }, 'it goes on collecting')
  const paused = await shown()
  t.match(paused, pausedForOwner)
  t.match((await call('GET', '/subscriptions')).json, [{ ...pausedForOwner, since: paused.since }])
  await restart()
  await publish('Two')
  t.match(await queue(), { state: 'paused', pending: 2 })
  t.same(await shown(), paused, 'over a restart')
  t.match(await ask('subscriptions.show', { name }), { paused: { at: paused.since, by: 'tester' } })
  t.same(receiver.received, [], 'nothing was sent')

  t.match(await ask('subscriptions.resume', { name }), { name, resumed: true })
  await publish('Three')
  await receiver.until((received) => received.length === 3)
  t.same(titles(receiver.received), ['One', 'Two', 'Three'])
  t.match(await shown(), { state: 'active', reason: null })
  t.match(await ask('subscriptions.show', { name }), { paused: null, disabled: null })
  t.match(await audited(one), [
    {
      who: 'tester',
      action: 'subscriptions.pause',
      target: name,
      detail: { institutionId: institutions[0] },
    },
    { action: 'subscriptions.resume', target: name, detail: { pausedAt: paused.since, pausedBy: 'tester' } },
  ])
})

onEachStore('what a paused webhook holds back is not late', async (t, store) => {
  const { receiver, ask, call, name, publish } = await start(t, store)
  const waiting = async () => {
    const { text } = await call('GET', '/metrics')
    const [pending, oldest] = ['pending', 'oldest_seconds'].map((gauge) =>
      Number(new RegExp(`^hub_work_${gauge} (\\S+)$`, 'm').exec(text)?.[1]),
    )
    return { pending, isLate: Number(oldest) > 0 }
  }
  receiver.behave(() => 503)
  await publish('One')
  await receiver.until((received) => received.length === 1)
  t.same(await waiting(), { pending: 1, isLate: true })
  await ask('subscriptions.pause', { name })
  t.same(await waiting(), { pending: 1, isLate: false })
  await ask('subscriptions.resume', { name })
  t.same(await waiting(), { pending: 1, isLate: true })
})

onEachStore('an operator sends a test message, and sees how the webhook answers', async (t, store) => {
  const one = await start(t, store)
  const { receiver, ask, name, shown } = one
  t.match(await ask('subscriptions.test', { name }), {
    name,
    delivered: true,
    delivery: { status: 201, reason: null },
  })
  t.match(receiver.received, [{ event: { event: 'de.org.hub.v1.test', test: true } }])
  receiver.behave(() => 500)
  t.match(await ask('subscriptions.test', { name }), { delivered: false, delivery: { status: 500 } })
  t.match(await shown(), { state: 'active' }, 'which changes nothing')
  const entry = { who: 'tester', action: 'subscriptions.test', target: name }
  t.match(await audited(one), [entry, entry])
  await t.rejects(ask('subscriptions.test', { name: 'nothing' }), {
    message: 'there is no subscription "nothing"',
  })
})

onEachStore('a delivery under way ends, and no other begins', async (t, store) => {
  const { receiver, ask, name, publish, queue } = await start(t, store)
  const held: ServerResponse[] = []
  receiver.behave((_pushed, response) => void held.push(response))
  await publish('One')
  await publish('Two')
  await receiver.until((received) => received.length === 1)
  await ask('subscriptions.pause', { name })
  receiver.behave(() => 201)
  for (const response of held) response.writeHead(201).end()
  while ((await queue())?.pending !== 1) await setTimeout(20)
  t.match(await ask('subscriptions.show', { name }), {
    state: 'paused',
    attempts: [{ status: 201, reason: null }],
  })
  t.same(titles(receiver.received), ['One'])
  await ask('subscriptions.resume', { name })
  await receiver.until((received) => received.length === 2)
  t.same(titles(receiver.received), ['One', 'Two'])
})

onEachStore('neither a test message nor a replay ends a pause', async (t, store) => {
  const { receiver, ask, call, name, publish, queue } = await start(t, store)
  await ask('subscriptions.pause', { name })
  await publish('One')
  t.match((await call('POST', `/subscriptions/${name}/test`)).json, { delivered: true })
  await t.rejects(ask('queues.replay', { name }), {
    message: /^nothing is replayed: tester paused it at .*; resume it first$/,
  })
  const refused = await call('PUT', '/pubsub', { subscription: name })
  t.equal(refused.status, 409)
  t.same(refused.json, { message: 'The subscription is paused by the operator', trace: null })
  t.match(await queue(), { state: 'paused', pending: 1 })
  t.same(titles(receiver.received), ['Test message'])
  await ask('subscriptions.resume', { name })
  await receiver.until((received) => received.length === 2)
  t.same(titles(receiver.received), ['Test message', 'One'])
})

onEachStore('paused and disabled are two things, and each ends on its own', async (t, store) => {
  const { receiver, ask, call, name, publish, queue, restart, shown, until } = await start(t, store)
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  await restart(nearlyAnHour)
  await until(({ state }) => state === 'disabled')
  const { since } = await shown()
  await t.rejects(ask('subscriptions.resume', { name }), {
    message:
      'nothing is resumed: it is disabled because its webhook answered 410; a replay or an acknowledged test message enables it',
  })
  await ask('subscriptions.pause', { name })
  t.match(await shown(), pausedForOwner)
  t.match(await ask('subscriptions.show', { name }), {
    state: 'paused',
    paused: { by: 'tester' },
    disabled: { at: since, by: 'hub', reason: 'answered 410' },
  })
  t.match(await ask('subscriptions.resume', { name }), { state: 'disabled', pending: 1 })
  t.match(await shown(), { state: 'disabled', reason: 'answered 410', since })

  await ask('subscriptions.pause', { name })
  receiver.behave(() => 201)
  const tried = receiver.received.length
  t.match((await call('POST', `/subscriptions/${name}/test`)).json, { delivered: true })
  t.match(await ask('subscriptions.show', { name }), { state: 'paused', disabled: null })
  t.match(await queue(), { state: 'paused', pending: 1 })
  await ask('subscriptions.resume', { name })
  await receiver.until((received) => received.length === tried + 2)
  t.same(titles(receiver.received).slice(tried), ['Test message', 'One'])
})

onEachStore('of two operators at once one pauses, and the other is told who', async (t, store) => {
  const one = await start(t, store)
  const { ask, name } = one
  const both = [ask('subscriptions.pause', { name }), ask('subscriptions.pause', { name })]
  const outcomes = (await Promise.allSettled(both)).sort((a, b) => (a.status < b.status ? -1 : 1))
  t.match(outcomes, [
    { status: 'fulfilled' },
    { status: 'rejected', reason: { message: /^tester paused it already, at 2/ } },
  ])
  await t.rejects(ask('subscriptions.pause', { name }), {
    message: /^tester paused it already, at 2/,
  })
  await ask('subscriptions.resume', { name })
  await t.rejects(ask('subscriptions.resume', { name }), {
    message: 'nothing is resumed: it is not paused',
  })
  const changes = (await audited(one)).filter(({ detail }) => Object(detail).failed === undefined)
  t.ok(changes.length <= 3)
  t.match(changes.at(-1), { action: 'subscriptions.resume' })
})

onEachStore('an operator removes a subscription with all it holds', async (t, store) => {
  const one = await start(t, store)
  const { ask, call, name, publish, receiver } = one
  await ask('subscriptions.pause', { name })
  await publish('One')
  t.same(await ask('subscriptions.remove', { name }), { name, removed: true, pending: 1, deadLetters: 0 })
  t.equal((await call('GET', `/subscriptions/${name}`)).status, 404)
  await one.restart()
  await publish('Two')
  t.same(await ask('subscriptions.list'), [])
  t.same(await ask('queues.list'), [])
  t.same(receiver.received, [])
  const entry = (await audited(one)).at(-1)
  t.match(entry, {
    who: 'tester',
    action: 'subscriptions.remove',
    target: name,
    detail: { institutionId: institutions[0], host: /^localhost/, contact: 'a@b.example', pending: 1 },
  })
  t.notMatch(JSON.stringify(entry), 'secret')
})

onEachStore('a subscription that its owner deleted meanwhile is not there', async (t, store) => {
  const one = await start(t, store)
  const { ask, call, name } = one
  const pausing = ask('subscriptions.pause', { name }).then(
    () => 'paused',
    (error: Error) => error.message,
  )
  t.equal((await call('DELETE', `/subscriptions/${name}`)).status, 200)
  const absent = `there is no subscription "${name}"`
  t.ok(['paused', absent].includes(await pausing))
  for (const command of ['show', 'pause', 'resume', 'remove']) {
    await t.rejects(ask(`subscriptions.${command}`, { name }), { message: absent })
  }
  t.same(await ask('subscriptions.list'), [], 'and a pause does not bring it back')
  t.equal((await call('GET', `/subscriptions/${name}`)).status, 404)
})

onEachStore('operators list and show the subscriptions of all institutions', async (t, store) => {
  const { ask, name, json, publish, receiver } = await start(t, store)
  const { id, title } = station()
  receiver.behave(() => 503)
  await publish('One')
  await receiver.until((received) => received.length === 1)
  await ask('subscriptions.pause', { name })
  const [row] = await ask<Record<string, unknown>[]>('subscriptions.list')
  t.same(row, {
    name,
    institutionId: institutions[0],
    livestream: { id, title },
    url: json.url,
    contact: 'a@b.example',
    state: 'paused',
    pending: 1,
    oldest: row?.oldest,
    deadLetters: 0,
    lastReason: 'answered 503',
    createdAt: json.since,
  })
  t.match(row, { oldest: /^2/ })
  for (const [asked, count] of [
    [{ institution: institutions[0] }, 1],
    [{ institution: institutions[1] }, 0],
    [{ livestream: id }, 1],
    [{ livestream: station(0, 1).id }, 0],
    [{ livestream: station().externalId }, 1],
    [{ livestream: title, state: 'paused' }, 1],
    [{ livestream: station(0, 1).externalId }, 0],
    [{ state: 'paused', limit: 1 }, 1],
    [{ state: 'disabled' }, 0],
  ] as const) {
    t.equal((await ask<unknown[]>('subscriptions.list', asked)).length, count, JSON.stringify(asked))
  }
  await t.rejects(ask('subscriptions.list', { livestream: 'crid://x' }), {
    message: 'there is no livestream "crid://x"',
  })
  await t.rejects(ask('subscriptions.list', { limit: 0 }), {
    message: 'limit must be a whole number from 1, not 0',
  })
  t.match(await ask('subscriptions.show', { name }), {
    ...row,
    serviceAccount: json.serviceAccount,
    ackDeadlineSeconds: 20,
    createdBy: String,
    attempts: [{ status: 503, reason: 'answered 503' }],
  })
})
