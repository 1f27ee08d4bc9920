import t from 'tap'
import { deriveLivestreamId, derivePublisherId } from '../../../event/derived-id.ts'
import { eventKinds } from '../../../event/kind.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connect } from '../../clients.ts'
import { institutions, playing, playingTopic, serviceOf, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'

const playingPath = '/events/de.org.hub.v1.radio.track.playing'
const nextPath = '/events/de.org.hub.v1.radio.track.next'
const [own = '', foreign = ''] = institutions

/** The smallest valid event (service.md §4.1 rule 2). */
const minimum = {
  type: 'music',
  start: new Date().toISOString(),
  length: 214,
  title: 'Ebbe und Flut',
  playlistItemId: 'kw1-1',
  services: [
    {
      type: 'PermanentLivestream',
      externalId: station().externalId,
      publisherId: station().publisher.externalId,
    },
  ],
}

t.test('publishing over HTTPS (service.md §4.1)', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const publish = (body: unknown, path = playingPath) => api.call('POST', path, { token, body })
  const { id } = station()
  const name = `de.org.hub.test.${encodeURIComponent(id)}`

  await t.test('the first event of a livestream creates its topic and is not published', async (t) => {
    const { status, json } = await publish(minimum)
    t.equal(status, 201)
    t.match(json, {
      statuses: { published: 0, blocked: 0, failed: 1 },
      event: {
        ...minimum,
        event: 'de.org.hub.v1.radio.track.playing',
        id: /^\d+$/,
        services: [
          {
            id,
            publisherId: station().publisher.id,
            topic: { id, name, status: 'TOPIC_CREATED', messageId: null },
          },
        ],
      },
      errors: [
        {
          path: '.body.services.0',
          message: 'The livestream had no topic, and has one now: send the event again',
          errorCode: 'topic.created',
        },
      ],
      trace: null,
    })
    t.same(Object.keys(json).sort(), ['errors', 'event', 'statuses', 'trace'])
  })

  await t.test('the same again is published, and seen over MQTT', async (t) => {
    const { status, json } = await publish(minimum)
    t.equal(status, 201)
    t.match(json, {
      statuses: { published: 1, blocked: 0, failed: 0 },
      event: { services: [{ topic: { id, name, status: 'MESSAGE_SENT', messageId: /^\d+$/ } }] },
      trace: null,
    })
    t.same(Object.keys(json).sort(), ['event', 'statuses', 'trace'], 'nothing to explain')
    const { topic, json: seen } = await app.received.until(() => true)
    t.equal(topic, playingTopic(station()))
    t.match(seen, { ...minimum, services: [{ id, publisherId: station().publisher.id }] })
    t.notOk(JSON.stringify(seen).includes('MESSAGE_SENT'), 'the topic is for the publisher only')
    t.equal(app.received.all.length, 1, 'and nothing of the first')
  })

  await t.test('next events have the same rules', async (t) => {
    const { json } = await publish({ ...minimum, event: 'de.org.hub.v1.radio.track.next' }, nextPath)
    t.match(json, { statuses: { published: 1 } })
    const { topic } = await app.received.until((one) => one.topic.endsWith('/track/next'))
    t.equal(topic, `radio/${id}/track/next`)
  })

  await t.test('a topic that MQTT created needs no repetition', async (t) => {
    const other = station(0, 1)
    const publisher = await connect(t, hub, await hub.publisher([own]))
    await publisher.client.publishAsync(`inbox/${own}`, JSON.stringify(playing(other)), { qos: 1 })
    const { json } = await publish(playing(other))
    t.match(json, { statuses: { published: 1, blocked: 0, failed: 0 } })
    const topics = await api.call('GET', '/topics', { token })
    t.match(topics.json, [{ type: 'PUBSUB' }, { type: 'PUBSUB' }])
  })

  await t.test('a livestream the feed does not know gets its derived id', async (t) => {
    const externalId = 'crid://kuestenfunk.example/new'
    const body = { ...minimum, services: [{ ...minimum.services[0], externalId }] }
    t.match((await publish(body)).json, {
      statuses: { failed: 1 },
      event: { services: [{ id: deriveLivestreamId('PermanentLivestream', externalId) }] },
    })
    t.match((await publish(body)).json, { statuses: { published: 1 } })
  })

  await t.test('a foreign or wrong publisher is blocked, with 201', async (t) => {
    const theirs = station(1)
    const publisher = { path: '.body.services.0.publisherId', errorCode: 'service.publisher.mismatch' }
    const institution = { path: '.body.services.0.institutionId', errorCode: 'service.institution.claim' }
    const livestream = { path: '.body.services.0', errorCode: 'service.institution.mismatch' }
    for (const [service, why] of [
      [serviceOf(theirs), institution],
      [{ ...minimum.services[0], publisherId: theirs.publisher.id }, publisher],
      [{ ...minimum.services[0], publisherId: 'nobody' }, publisher],
      [{ ...minimum.services[0], publisherId: derivePublisherId('nobody') }, publisher],
      [{ ...serviceOf(theirs), publisherId: station().publisher.id, institutionId: own }, livestream],
      [{ ...minimum.services[0], institutionId: foreign }, institution],
    ] as const) {
      const { status, json } = await publish({ ...minimum, title: 'blocked', services: [service] })
      t.equal(status, 201)
      t.match(json, { statuses: { published: 0, blocked: 1, failed: 0 }, event: { services: [service] } })
      t.match(json.errors, [why])
    }
    const { json } = await publish(minimum)
    await app.received.until((one) => one.json.id === Object(json.event).id)
    t.notOk(app.received.all.some((one) => one.json.title === 'blocked'))
  })

  await t.test('each service has its own verdict', async (t) => {
    const services = [
      minimum.services[0],
      { ...minimum.services[0], externalId: 'crid://kuestenfunk.example/newer' },
      serviceOf(station(1)),
    ]
    const { json } = await publish({ ...minimum, services })
    t.match(json, {
      statuses: { published: 1, blocked: 1, failed: 1 },
      event: {
        services: [{ topic: { status: 'MESSAGE_SENT' } }, { topic: { status: 'TOPIC_CREATED' } }, {}],
      },
      errors: [
        { path: '.body.services.1', errorCode: 'topic.created' },
        { path: '.body.services.2.institutionId', errorCode: 'service.institution.claim' },
      ],
    })
  })

  await t.test('an id of the publisher is replaced', async (t) => {
    const { json } = await publish({ ...minimum, id: 'mine' })
    t.match(json, { event: { id: /^\d+$/ } })
  })

  await t.test('every missing required field is a 400 that names it', async (t) => {
    for (const field of ['type', 'start', 'length', 'title', 'services', 'playlistItemId']) {
      const { status, json } = await publish({ ...minimum, [field]: undefined })
      t.equal(status, 400, field)
      t.same(json, {
        message: 'Invalid input',
        errors: [
          {
            path: `.body.${field}`,
            message: `A required field is missing: expected "${field}" in TrackEvent`,
            errorCode: 'required.openapi.validation',
          },
        ],
        trace: null,
      })
    }
  })

  await t.test('the event of the body must be that of the path', async (t) => {
    const { status, json } = await publish({ ...minimum, event: 'de.org.hub.v1.radio.track.next' })
    t.equal(status, 400)
    t.same(json, {
      message: 'Invalid input',
      errors: [
        {
          path: '.body.event',
          message:
            'The event name is not allowed here: "de.org.hub.v1.radio.track.next", expected that of the URL, de.org.hub.v1.radio.track.playing',
          errorCode: 'event.name',
        },
      ],
      trace: null,
    })
  })

  await t.test('only the kinds that HTTPS takes have a path', async (t) => {
    const taken = eventKinds.filter(({ doors }) => doors.includes('https')).map(({ name }) => name)
    const others = eventKinds.map(({ name }) => name).filter((name) => !taken.includes(name))
    const message = new RegExp(`expected one of ${taken.join(', ')}$`)
    for (const name of [
      ...others,
      'de.org.hub.v1.radio.text',
      'x',
      'constructor',
      'a%2Fb',
      '%2e%2e',
      'x'.repeat(5_000),
    ]) {
      const { status, json } = await publish(minimum, `/events/${name}`)
      t.equal(status, 400, name)
      t.match(json, { message: 'Invalid input', errors: [{ message }], trace: null })
      t.match(json.errors, [{ path: '.params.eventName', errorCode: 'event.name' }])
    }
  })

  await t.test('events reach the budget and the metrics', async (t) => {
    const status = await hub.ask<{ budget: { count: number }; counters: Record<string, number> }>('status')
    t.ok(status.budget.count >= 4)
    t.ok((status.counters['hub_events_total{outcome=published}'] ?? 0) >= 4)
  })
})

t.test('above the publish rate there is a 429 that says when to go on', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '1' })
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const began = performance.now()
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => api.call('POST', playingPath, { token, body: minimum })),
  )
  const refused = answers.filter(({ status }) => status === 429)
  // A burst of two, and one more for each second that a slow machine takes.
  const most = 2 + (performance.now() - began) / 1000
  t.ok(answers.length - refused.length <= most, `${refused.length} of ${answers.length}`)
  for (const { json, headers } of refused) {
    t.same(json, { message: 'Too many requests, try again later', trace: null })
    t.match(headers['retry-after'], /^\d+$/)
  }
})

t.test('a large event leaves less of the publish rate, whether it is accepted or not', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '3' })
  const api = await openApi(t, hub)
  for (const large of [
    { ...minimum, title: 'x'.repeat(400_000) },
    { ...minimum, album: 'x'.repeat(400_000) },
  ]) {
    const { token } = await addUser(hub, api, own)
    const publish = (body: unknown) => api.call('POST', playingPath, { token, body })
    // A single large event is within the rate. Publish until a refusal: on a slow machine, the rate recovers between
    // the requests.
    const answers = [await publish(large), await publish(minimum)]
    while (answers.every(({ status }) => status !== 429)) {
      answers.push(await publish(large), await publish(minimum))
    }
    t.not(answers[0]?.status, 429)
    t.match(answers.find(({ status }) => status === 429)?.headers['retry-after'], /^\d+$/)
  }
})

t.test('an event that becomes too large with its ids is refused', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const body = { ...minimum, services: Array(1000).fill(minimum.services[0]) }
  t.match(await api.call('POST', playingPath, { token, body }), { status: 201 })
  const title = 'x'.repeat(400_000 - JSON.stringify(body).length)
  t.match(await api.call('POST', playingPath, { token, body: { ...body, title } }), {
    status: 400,
    json: {
      errors: [{ path: '.body', errorCode: 'payload.size', message: /expected at most 475136$/ }],
    },
  })
})

t.test('the topic of a service is dropped, also of one that is blocked', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const topic = {
    id: 'urn:org:permanent-livestream:forged',
    name: 'x',
    status: 'MESSAGE_SENT',
    messageId: '1',
  }
  const services = [
    { ...minimum.services[0], topic, kept: true },
    { ...minimum.services[0], publisherId: 'urn:org:publisher:foreign', topic, kept: true },
  ]
  const publish = () => api.call('POST', playingPath, { token, body: { ...minimum, services } })
  await publish()
  const { json } = await publish()
  const [sent, blocked] = Object(json.event).services
  t.match(sent, { kept: true, topic: { id: station().id, status: 'MESSAGE_SENT', messageId: /^\d+$/ } })
  t.not(sent.topic.messageId, '1')
  t.same(blocked, { ...minimum.services[0], publisherId: 'urn:org:publisher:foreign', kept: true })
  const { json: arrived } = await app.received.until(() => true)
  t.equal(Object(arrived).services.length, 1)
  t.match(Object(arrived).services[0], { kept: true })
  t.notOk('topic' in Object(arrived).services[0])
})

t.test('without a feed there is a 503 that says when to come back', async (t) => {
  const hub = await startTestHub(t, { HUB_FEED: '/nowhere/feed.json' })
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const { status, headers, json } = await api.call('POST', playingPath, { token, body: minimum })
  t.equal(status, 503)
  t.match(headers['retry-after'], /^[1-9]\d*$/)
  t.same(json, { message: 'The livestream feed is not available, try again later', trace: null })
  t.equal((await api.call('POST', playingPath, { token, body: {} })).status, 400, 'what can never go is told')
  const health = await api.call('GET', '/health')
  t.equal(health.status, 503)
  t.same(health.json, { status: 'unavailable', store: true, feed: false })
})
