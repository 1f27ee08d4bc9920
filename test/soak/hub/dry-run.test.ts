import { addUser, openApi } from '../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { control, institutions, playing, playingTopic, serviceOf, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

/* The dry run (design.md §7): the hub decides and reports, and does nothing else. */
const [own = '', foreign = ''] = institutions
const [livestream, second] = [station(0, 0), station(0, 1)]
const topic = `inbox/${own}/check`
const path = '/events/de.org.hub.v1.radio.track.playing'

onEachStore('over MQTT', async (t, store) => {
  const hub = await startTestHub(t, store)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const event = playing(livestream, { services: [serviceOf(livestream), serviceOf(second)] })
  const good = {
    dryRun: true,
    outcome: 'published',
    id: null,
    errors: [],
    statuses: { published: 2, blocked: 0, failed: 0 },
    services: [livestream.id, second.id],
  }
  for (const qos of [0, 1, 2] as const)
    t.match(await studio.publish(event, { topic, qos }), good, `QoS ${qos}`)
  t.match(await studio.publish(playing(station(1)), { topic }), {
    dryRun: true,
    outcome: 'blocked',
    id: null,
    errors: [{ errorCode: 'service.institution.mismatch' }],
  })
  t.match(await studio.publish('{}', { topic }), { dryRun: true, outcome: 'invalid', id: null })
  t.match(await studio.publish(event, { topic: `inbox/${foreign}/check` }), {
    outcome: 'blocked',
    dryRun: undefined,
    errors: [{ errorCode: 'topic.denied' }],
  })
  const tracks = await connectPublisher(t, hub, await hub.publisher([own], ['track']), own)
  const seen = tracks.received.all.length
  await tracks.client.publishAsync(topic, JSON.stringify(control(livestream)), { qos: 1 })
  t.match((await tracks.received.until(({ json }) => json.dryRun === true, seen)).json, {
    outcome: 'blocked',
    errors: [{ errorCode: 'event.class' }],
  })

  t.same(await hub.ask('retained.list'), [])
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  t.same((await api.call('GET', '/topics', { token })).json, [], 'no topic was made')
  const before = studio.received.all.length
  await studio.client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 1 })
  const { json } = await studio.received.until(({ json }) => json.dryRun !== true, before)
  t.match(json, { ...good, dryRun: undefined, id: /^\d+$/ }, 'the real one comes to the same')
  await app.received.count(2)
  t.same(
    app.received.all.map(({ topic, json: { id } }) => [topic, id]),
    [livestream, second].map((one) => [playingTopic(one), json.id]),
    'and only that arrives',
  )
})

onEachStore('over MQTT it costs as much of the publish rate as the event', async (t, store) => {
  const rate = 5
  const hub = await startTestHub(t, { ...store, HUB_PUBLISH_RATE: `${rate}` })
  const { client } = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const before = performance.now()
  const payload = JSON.stringify(playing(livestream))
  await Promise.all(Array.from({ length: 15 }, () => client.publishAsync(topic, payload, { qos: 1 })))
  t.ok(performance.now() - before >= (1000 * (15 - 2 * rate)) / rate - 100)
})

onEachStore('over HTTPS', async (t, store) => {
  const hub = await startTestHub(t, store)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const body = playing(livestream)
  const post = (query: string, event: object = body) => api.call('POST', path + query, { token, body: event })
  const withoutTopic = {
    statuses: { published: 0, blocked: 0, failed: 1 },
    errors: [{ errorCode: 'topic.created' }],
  }
  for (const time of ['first', 'second', 'third']) {
    t.match(
      await post('?dryRun=true'),
      {
        status: 201,
        json: {
          statuses: { published: 1, blocked: 0, failed: 0 },
          errors: undefined,
          dryRun: true,
          warnings: [{ path: '.body.services.0', errorCode: 'topic.created', message: /would make it/ }],
          event: {
            id: null,
            services: [{ id: livestream.id, topic: { status: 'TOPIC_CREATED', messageId: null } }],
          },
        },
      },
      time,
    )
  }
  t.same((await api.call('GET', '/topics', { token })).json, [], 'no topic was made')
  t.match(await post(''), { status: 201, json: { ...withoutTopic, dryRun: undefined } })
  t.match(await post('?dryRun=true'), {
    status: 201,
    json: {
      dryRun: true,
      statuses: { published: 1, blocked: 0, failed: 0 },
      event: { id: null, services: [{ topic: { status: 'MESSAGE_SENT', messageId: null } }] },
    },
  })
  t.match(await post('?dryRun=true', playing(station(1))), {
    status: 201,
    json: { dryRun: true, statuses: { blocked: 1 } },
  })
  t.match(await post('?dryRun=true', {}), { status: 400 })
  for (const wrong of ['?dryRun', '?dryRun=yes', '?dryRun=true&dryRun=false']) {
    t.match(await post(wrong), {
      status: 400,
      json: { errors: [{ path: '.query.dryRun', errorCode: 'enum.openapi.validation' }] },
    })
  }
  for (const [wrong, name] of [
    ['?dryrun=true', 'dryrun'],
    ['?DryRun=true', 'DryRun'],
    ['?dryRun=true&dry=true', 'dry'],
    ['?dry%20run', 'dry run'],
  ]) {
    t.match(await post(`${wrong}`), {
      status: 400,
      json: { errors: [{ path: `.query.${name}`, errorCode: 'additionalProperties.openapi.validation' }] },
    })
  }
  const { json: many } = await post(`?${Array.from({ length: 1000 }, (_, index) => `p${index}`).join('&')}`)
  t.equal([many.errors].flat().length, 10, 'an answer is not larger than the question')
  t.match(await post('?dryRun=false'), {
    status: 201,
    json: { statuses: { published: 1 }, event: { id: /^\d+$/ } },
  })
  await app.received.count(1)
  t.equal(app.received.all.length, 1)
})

onEachStore('over HTTPS it costs as much of the publish rate as the event', async (t, store) => {
  const hub = await startTestHub(t, { ...store, HUB_PUBLISH_RATE: '1' })
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const body = playing(livestream)
  const began = performance.now()
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => api.call('POST', `${path}?dryRun=true`, { token, body })),
  )
  const accepted = answers.filter(({ status }) => status !== 429)
  // A burst of two, and one more for each second that a slow machine takes.
  const most = 2 + (performance.now() - began) / 1000
  t.ok(accepted.length <= most, `${accepted.length} of ${answers.length}`)
})
