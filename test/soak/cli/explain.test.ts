import { join } from 'node:path'
import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { runHubctl } from '../../cli/run-hubctl.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { institutions, playing, serviceOf, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * hubctl explain EVENT (open.md §7).
 */
const [own = ''] = institutions
const livestream = station()

interface Step {
  step: string
  result: string
  detail: string
}

t.test('an event is explained from its arrival to each receiver', async (t) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  receiver.behave(() => 500)
  const hub = await startTestHub(t, pushing(receiver), join(home, 'hub'))
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const reader = await connect(t, hub, await hub.subscriber('radio/#'))
  await reader.client.subscribeAsync('radio/#')
  const explain = async (id: string) => {
    const steps = await hub.ask<Step[]>('explain', { id })
    return (name: string) => steps.filter(({ step }) => step === name)
  }
  await studio.publish(playing(livestream))
  const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: livestream.id }
  await api.call('POST', '/subscriptions', { token, body: { ...body, url: receiver.url('/hook') } })
  const { id } = await studio.publish(playing(livestream, { title: 'kw1.mp3' }))
  await receiver.until(({ length }) => length > 0)
  await hub.until(async () => /1 tries/.test((await explain(String(id)))('delivery')[0]?.detail ?? ''))
  const published = await explain(String(id))
  t.match(published('arrival'), [{ result: 'done', detail: /over MQTT from client "mqttjs_.*Küstenfunk/ }])
  for (const check of ['topic', 'size', 'json', 'shape', 'class', 'feed', 'ownership'])
    t.match(published(`check: ${check}`), [{ result: 'passed' }], check)
  t.match(published('warning'), [{ detail: /\.title The title is the name of a file/ }])
  t.match(published('decision'), [{ detail: 'published' }])
  t.match(published('stages'), [{ result: 'done', detail: /^decided after [0-9.]+ ms, stored after/ }])
  t.match(published('subscribers'), [{ detail: /^1 connected clients of/ }])
  t.match(published('topic'), [{ detail: /track\/playing: new subscribers get it/ }])
  t.match(published('delivery'), [{ result: 'waits', detail: /retrying, 1 tries, last .*: answered 500/ }])

  await studio.publish(playing(livestream, { length: 0 }))
  await studio.publish({ ...playing(livestream), services: [serviceOf(station(1))] })
  const posted = await api.call('POST', '/events/de.org.hub.v1.radio.track.playing', {
    token,
    body: playing(station(0, 1)),
  })
  const { events } = await hub.ask<{ events: { position: number }[] }>('events.list', { limit: 3 })
  const [overHttps, foreign, invalid] = await Promise.all(
    events.map(({ position }) => explain(String(position))),
  )
  t.match(invalid?.('check: shape'), [
    { result: 'failed', detail: /^\.length .*: send a number greater than 0/ },
  ])
  t.match(invalid?.('check: ownership'), [{ result: 'not reached' }])
  t.match(invalid?.('decision'), [{ detail: 'invalid' }])
  t.same(invalid?.('stages'), [])
  t.match(foreign?.('check: ownership'), [{ result: 'failed', detail: /another institution/ }])
  t.match(foreign?.('check: shape'), [{ result: 'passed' }])
  t.equal(Object(posted.json.statuses).failed, 1)
  t.match(overHttps?.('arrival'), [{ detail: /over HTTPS/ }])
  t.match(overHttps?.('check: topic of the livestream'), [{ result: 'failed', detail: /Send it again/ }])
  t.same(overHttps?.('check: class'), [], 'there is no inbox over HTTPS')

  const printed = await runHubctl(['--socket', hub.adminSocket, 'explain', String(id)])
  t.equal(printed.code, 0)
  t.match(printed.stdout, /^STEP +RESULT +DETAIL\narrival +done +/)
  await t.rejects(hub.ask('explain', { id: '999999' }), { message: /no event that is still kept/ })
})
