import { Parser } from '@asyncapi/parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import Ajv2020 from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import t from 'tap'
import { eventKinds } from '../../../event/kind.ts'
import { radioTopic } from '../../../event/topic.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { object } from '../../bridge-https/description.ts'
import { connectPublisher } from '../../clients.ts'
import { readPage } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { words } from '../../words.ts'

const [own = ''] = institutions
/** They answer 503 to a load balancer, which asks again by itself. */
const healthChecks = ['/health', '/readyz']

t.test('the OpenAPI description is valid, and complete', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { json, headers } = await api.call('GET', '/openapi.json')
  t.match(headers['content-type'], /^application\/json/)
  const result = await new Validator().validate(structuredClone(json))
  t.same(result.errors, undefined)
  t.equal(result.valid, true)
  t.match(json, { openapi: '3.1.0', servers: [{ url: `https://localhost:${hub.httpsPort}` }] })
  t.notMatch(JSON.stringify(json), /"\$id"|"format":"instant"/)

  const routes = api.description.operations.map(({ method, path }) => `${method} ${path}`)
  for (const route of [
    ...['login', 'refresh', 'reset'].map((name) => `POST /auth/${name}`),
    'POST /events/{eventName}',
    'GET /topics',
    'GET /topics/{topicName}',
    'POST /subscriptions',
    'GET /subscriptions',
    'GET /subscriptions/{name}',
    'DELETE /subscriptions/{name}',
    'PUT /pubsub',
    'POST /pubsub',
    'GET /',
    'GET /health',
  ]) {
    t.ok(routes.includes(route), route)
  }
  const schemas = object(object(json.components).schemas)
  const service = object(object(schemas.PublishedService).properties)
  t.match(service.topic, { $ref: '#/components/schemas/ServiceTopic' }, 'a published service has a topic')
  t.match(schemas.ServiceTopic, {
    required: ['id', 'name', 'status', 'messageId'],
    properties: { status: { enum: ['MESSAGE_SENT', 'TOPIC_CREATED'] } },
  })
  const event = object(schemas.TrackEvent)
  t.match(object(event.properties).services, { maxItems: 1000, description: /at most 200 different/ })
  t.ok(Array.isArray(event.examples), 'with examples')
  for (const { method, path, isGuarded, statuses } of api.description.operations) {
    // A stream would not end.
    const query = path.endsWith('/stream') ? '?delay=x' : ''
    const { status } = await api.call(method, `${path.replace(/\{\w+\}/, 'x')}${query}`)
    t.equal(status === 401, isGuarded, `${method} ${path} asks for a token as it says`)
    const isLogIn = method === 'POST' && ['/auth/login', '/auth/session'].includes(path)
    t.equal(statuses.includes('401'), isGuarded || isLogIn)
  }
})

t.test('the description has an example of every body, and names the headers of answers', async (t) => {
  const hub = await startTestHub(t)
  const { json } = await (await openApi(t, hub)).call('GET', '/openapi.json')
  const ajv = new Ajv2020.default({ strict: false })
  formats.default(ajv)
  ajv.addSchema({ $id: 'openapi', components: json.components })
  const checkExamples = (schema: object, where: string) => {
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components'))
    const validate = ajv.compile(absolute)
    const examples = [object(schema).examples].flat()
    t.ok(examples[0], `${where} has an example`)
    for (const example of examples) t.ok(validate(example), `${where}: ${ajv.errorsText(validate.errors)}`)
  }
  for (const [name, schema] of Object.entries(object(object(json.components).schemas))) {
    if (object(schema).type === 'object') checkExamples(object(schema), name)
  }
  for (const [path, item] of Object.entries(object(json.paths))) {
    for (const [method, operation] of Object.entries(object(item))) {
      const { requestBody, responses } = object(operation)
      const { schema } = object(object(object(requestBody).content)['application/json'])
      for (const variant of [object(schema).anyOf ?? schema ?? []].flat()) {
        if (!object(variant).$ref) checkExamples(object(variant), `${method} ${path}`)
      }
      for (const [status, response] of Object.entries(object(responses))) {
        const headers = Object.keys(object(object(response).headers))
        const isRefusal = status === '429' || (status === '503' && !healthChecks.includes(path))
        t.equal(headers.includes('Retry-After'), isRefusal, `${method} ${path} ${status}`)
        t.equal(headers.includes('WWW-Authenticate'), status === '401', `${method} ${path} ${status}`)
        const { schema: answer } = object(object(object(response).content)['application/json'])
        if (object(answer).examples) checkExamples(object(answer), `${method} ${path} ${status}`)
      }
    }
  }
})

t.test('the description is a page as well', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const page = await api.raw('GET', '/docs/')
  t.equal(page.status, 200)
  for (const [, file = ''] of page.text.matchAll(/(?:src|href)="(\.\/static\/[^"]+)"/g)) {
    const path = `/docs/${file.slice(2)}`
    t.equal((await api.raw('GET', path)).status, 200, file)
    // Like each file of the hub, it comes whole: a part is never needed, and one behind the end was a 404.
    for (const range of ['bytes=0-1', 'bytes=999999999-'])
      t.equal((await api.raw('GET', path, { headers: { range } })).status, 200, `${range} of ${file}`)
  }
  // Its script takes the address of the page for a folder.
  for (const other of [
    '/docs',
    '/docs?x',
    '/docs/?x=/',
    '/docs/static/index.html',
    '/docs/static/index.html?x',
  ]) {
    const { status, headers } = await api.raw('GET', other)
    const { pathname, search } = new URL(String(headers.location), `https://hub.example${other}`)
    t.match({ status, pathname, search }, { status: 302, pathname: '/docs/', search: '' }, other)
  }
  const { json } = await api.raw('GET', '/docs/json')
  t.same(json, (await api.call('GET', '/openapi.json')).json)
  t.equal((await api.raw('GET', '/docs/yaml')).status, 404, 'no other form is made for each request')
})

t.test('each schema has an address of its own, and refers to the others there', async (t) => {
  const publicUrl = 'https://hub.example/now'
  const hub = await startTestHub(t, { HUB_PUBLIC_URL: publicUrl })
  const api = await openApi(t, hub)
  const addressOf = (name: string) => `${publicUrl}/schemas/${name}.json`
  const ajv = new Ajv2020.default({ strict: true, allowUnionTypes: true, loadSchema })
  formats.default(ajv)
  async function loadSchema(uri: string) {
    const { status, headers, json } = await api.call('GET', uri.replace(publicUrl, ''))
    t.equal(status, 200, uri)
    t.match(headers['content-type'], /^application\/schema\+json/)
    t.match(headers['cache-control'], /^public, max-age=\d+, stale-while-revalidate=0$/)
    t.match(json, { $schema: 'https://json-schema.org/draft/2020-12/schema', $id: uri })
    return json
  }
  const described = await Promise.all(
    ['/openapi.json', '/asyncapi.json'].map((path) => api.call('GET', path)),
  )
  t.match(described[1]?.json, { servers: { websocket: { host: 'hub.example', pathname: '/now/mqtt' } } })
  const names = new Set(
    described.flatMap(({ json }) => Object.keys(object(object(object(json).components).schemas))),
  )
  for (const name of words(`TrackEvent ControlEvent DataEvent Service Feedback Subscription Error`)) {
    t.ok(names.has(name), name)
  }
  for (const name of names) {
    const validate = await ajv.compileAsync({ $ref: addressOf(name) })
    for (const example of [object(await loadSchema(addressOf(name))).examples ?? []].flat()) {
      t.ok(validate(example), `${name}: ${ajv.errorsText(validate.errors)}`)
    }
  }
  const isTrack = await ajv.compileAsync({ $ref: addressOf('TrackEvent') })
  t.ok(isTrack(playing(station())))
  t.notOk(isTrack({ ...playing(station()), services: [{ type: 'Livestream' }] }), 'references are followed')
  for (const name of ['Nothing', 'constructor', '__proto__', 'a.b']) {
    const { status, json } = await api.call('GET', `/schemas/${name}.json`)
    t.equal(status, 404, name)
    t.same(json, { message: 'Schema not found', trace: null })
  }
})

t.test('the AsyncAPI description is valid, and names who may do what on each channel', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { json } = await api.call('GET', '/asyncapi.json')
  const { document, diagnostics } = await new Parser().parse(JSON.stringify(json))
  t.same(
    diagnostics.filter(({ severity }) => severity === 0),
    [],
    'no errors',
  )
  t.equal(document?.version(), '3.0.0')
  const channels = document?.allChannels().all() ?? []
  t.same(channels.map((channel) => channel.address()).sort(), [
    'feedback/{institutionId}',
    'inbox/{institutionId}',
    'inbox/{institutionId}/check',
    'inbox/{institutionId}/{class}',
    ...eventKinds.map((kind) => radioTopic('{livestreamId}', kind)).sort(),
  ])
  for (const channel of channels) {
    const acl: unknown = channel.extensions().get('x-acl')?.value()
    const roles = Array.isArray(acl) ? acl.map(({ role }) => role) : []
    t.same(roles.sort(), ['publisher', 'subscriber'], channel.address() ?? '')
  }
  t.match(JSON.stringify(json), `localhost:${hub.mqttPort}`)

  // The validator has no schema of feedback: compare the description with real feedback.
  const ajv = new Ajv2020.default({ strict: false })
  formats.default(ajv)
  const validate = ajv.compile(object(object(object(json.components).schemas).Feedback))
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const fields = Object.keys(object(object(object(object(json.components).schemas).Feedback).properties))
  const warned = playing(station(), { plugins: [{ type: 'nobody' }] })
  for (const event of [playing(station()), warned, playing(station(1)), {}, 'no json']) {
    const report = await publisher.publish(event)
    t.same(
      Object.keys(report).filter((field) => !fields.includes(field)),
      [],
      'every field of it',
    )
    t.equal('warnings' in report, event === warned)
    t.ok(validate(report), `${report.outcome}: ${ajv.errorsText(validate.errors)}`)
  }
})

t.test('health and metrics', async (t) => {
  const hub = await startTestHub(t, { HUB_LIVESTREAM_METRICS: 'true' })
  const api = await openApi(t, hub)
  await addUser(hub, api, own)
  const info = await api.call('GET', '/')
  t.equal(info.status, 200)
  t.match(info.json, { service: 'now-playing-hub', stage: 'test', status: 'ok', version: /^\d+\.\d+/ })
  t.same(Object.keys(info.json).sort(), ['service', 'stage', 'status', 'version'])
  const health = await api.call('GET', '/health')
  t.equal(health.status, 200)
  t.same(health.json, { status: 'ok', store: true, feed: true })
  t.equal((await api.call('HEAD', '/health')).text, '')
  const metrics = await api.call('GET', '/metrics')
  t.match(metrics.headers['content-type'], /^text\/plain/)
  t.match(metrics.text, /^hub_https_requests_total\{route="POST \/auth\/login",status="200"\} 1$/m)
  t.match(metrics.text, /^hub_logins_total\{outcome="ok"\} 1$/m)
  const names = [...metrics.text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name)
  const ofTheHub = names.filter((name) => !/^(process|nodejs)_/.test(name))
  const documented = new Set(readPage('reference/metrics.md').match(/\bhub_[a-z_]+/g))
  t.same(ofTheHub.sort(), [...documented].sort(), 'the reference has each metric, and no other')
})
