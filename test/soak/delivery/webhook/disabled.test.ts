import t from 'tap'
import { onEachStore } from '../../../stores.ts'
import { nearlyAnHour, startWithWebhook as start, titles } from './one-webhook.ts'

/*
 * A webhook that answers nothing but 410 for an hour is disabled. Its messages wait until a replay or an acknowledged
 * test message: docs/decisions, "410 is believed after an hour".
 */

// The tests mostly wait, so two run at the same time.
t.jobs = 2

onEachStore('410 is tried again like any failure', async (t, store) => {
  const { receiver, json, shown, until, untilIdle, publish, queue } = await start(t, store)
  t.match(json, { state: 'active', reason: null })
  t.same(await shown(), json)
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  const retrying = await shown()
  t.match(retrying, { state: 'retrying', reason: 'answered 410' })
  t.ok(Date.parse(String(retrying.since)) >= Date.parse(String(json.since)))
  await publish('Two')
  await receiver.until((received) => received.length === 2)
  t.same(await shown(), retrying, 'since the first of a row')
  receiver.behave(() => 201)
  await receiver.until((received) => titles(received).includes('Two'))
  const pushed = titles(receiver.received)
  t.same([...new Set(pushed)], ['One', 'Two'])
  t.ok(pushed.filter((title) => title === 'One').length >= 3)
  await untilIdle()
  t.match(await shown(), { state: 'active', reason: null })
  t.match(await queue(), { state: 'idle', pending: 0, deadLetters: 0 })
})

onEachStore('after an hour of 410 it is disabled, collects, and sends all in order', async (t, store) => {
  const one = await start(t, store)
  const { receiver, mail, publish, shown, until, call, name } = one
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  await one.restart(nearlyAnHour)
  await until(({ state }) => state === 'disabled')
  const disabled = await shown()
  t.match(disabled, { reason: 'answered 410' })
  t.match((await call('GET', '/subscriptions')).json, [{ state: 'disabled', since: disabled.since }])
  t.match((await one.queue())?.state, 'disabled')
  const { to, text } = await mail.next()
  t.same(to, ['a@b.example'])
  t.match(text, name)
  t.notMatch(text, 'secret')

  const tried = receiver.received.length
  await publish('Two')
  t.match(await one.queue(), { pending: 2, deadLetters: 0 }, 'it goes on collecting')
  await one.restart()
  await publish('Three')
  t.match(await one.queue(), { state: 'disabled', pending: 3, deadLetters: 0 })
  t.same(await shown(), disabled)
  t.match((await call('POST', `/subscriptions/${name}/test`)).json, { delivered: false })
  t.match(await shown(), { state: 'disabled' })
  t.equal(receiver.received.length, tried + 1, 'nothing but the test message was sent')

  receiver.behave(() => 204)
  t.match((await call('POST', `/subscriptions/${name}/test`)).json, { delivered: true })
  await receiver.until((received) => titles(received).includes('Three'))
  t.same(titles(receiver.received.slice(tried + 2)), ['One', 'Two', 'Three'])
  await until(({ state }) => state === 'active')
  t.equal(mail.count(), 1, 'its contact heard of it once')
})

onEachStore('a replay enables it too, and what waited goes first', async (t, store) => {
  const { receiver, publish, until, restart, call, name, shown } = await start(t, store)
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  await restart(nearlyAnHour)
  await until(({ state }) => state === 'disabled')
  await publish('Two')
  receiver.behave(() => 201)
  t.equal((await call('PUT', '/pubsub', { subscription: name, messageId: 'none' })).status, 404)
  t.match(await shown(), { state: 'disabled' }, 'by nothing that is not there')
  t.match((await call('PUT', '/pubsub', { subscription: name })).json, { replayed: 0 })
  await receiver.until((received) => titles(received).includes('Two'))
  t.same(titles(receiver.received).slice(-2), ['One', 'Two'])
})

onEachStore('any other answer in between begins the hour anew', async (t, store) => {
  const { receiver, publish, until, restart, shown } = await start(t, store)
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  const answers = [500, 410, 410]
  receiver.behave(() => answers.shift() ?? 201)
  const tried = receiver.received.length
  await restart(nearlyAnHour)
  await receiver.until((received) => received.length > tried && answers.length === 0)
  await until(({ state }) => state === 'active')
  t.match(await shown(), { state: 'active' })
  t.equal(receiver.received.filter(({ event }) => event.title === 'One').length, tried + 4)
})
