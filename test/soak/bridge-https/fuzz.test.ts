import fc from 'fast-check'
import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { type Json, type Operation, object } from '../../bridge-https/description.ts'
import { institutions, playing, station } from '../../events.ts'
import { webhookBody } from '../../receiver.ts'
import { startTestHub } from '../../start-hub.ts'

const [own = ''] = institutions
const runs = Number(process.env.FUZZ_RUNS ?? 2_500)

/*
 * Random requests from the hub's OpenAPI description: bodies that fit their schema, bodies that nearly fit, and
 * nonsense. Every answer must be in the description, and must not be a 500.
 */
t.test(`${runs} requests from the description find nothing that it does not allow`, async (t) => {
  // Without room a stream ends at once.
  const limits = { HUB_PUBLISH_RATE: '0', HUB_LOGIN_FAILURES: '0', HUB_MAX_STREAMS: '0' }
  const hub = await startTestHub(t, limits)
  const api = await openApi(t, hub)
  const { token, refreshToken } = await addUser(hub, api, own)
  const { token: operator } = await addUser(hub, api, own, { permissions: ['operate'] })
  const body = playing(station())
  await api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body })
  const topic = station().id
  const subscribe = webhookBody('https://203.0.114.9/', topic)
  const { json: subscription } = await api.call('POST', '/subscriptions', { token, body: subscribe })

  const { description } = api
  const schemas = object(object(description.document.components).schemas)
  // Values that the hub knows, and values that are known to break programs.
  const known = [
    ...[topic, String(subscription.name), `de.org.hub.test.${encodeURIComponent(topic)}`, refreshToken],
    ...[station().externalId, station().publisher.id, own, 'https://203.0.114.9/', 'a@b.example'],
    ...[
      '2026-01-31T12:00:00+01:00',
      '__proto__',
      'constructor',
      '',
      '\u0000',
      '\ud800',
      '%2e%2e%2f',
      "' or 1=1",
    ],
  ]
  const created = [String(subscription.name)]
  const statuses = new Map<string, number>()
  let requests = 0

  const passwords = description.operations.filter(({ path }) => path === '/auth/login')
  const operations = description.operations.filter((operation) => !passwords.includes(operation))
  // By chance alone, one of the many that are picked rarely would be left out now and then.
  for (const operation of operations) await search([operation], 1)
  await search(operations, runs - 50 - operations.length)
  // 50 requests are enough to see all answers of the log-in.
  await search(passwords, 50)

  t.ok(requests >= runs, `${requests} requests`)
  t.comment([...statuses].sort().join(' '))
  for (const operation of description.operations) {
    const seen = [...statuses.keys()].filter((key) =>
      key.startsWith(`${operation.method} ${operation.path} `),
    )
    t.ok(seen.length > 0, `${operation.method} ${operation.path} was asked`)
  }
  // Valid requests must succeed, or else the search would have tested only refusals.
  for (const expected of [
    'POST /events/{eventName} 201',
    'POST /subscriptions 201',
    'GET /subscriptions/{name} 200',
    'DELETE /subscriptions/{name} 200',
  ]) {
    t.ok(statuses.has(expected), expected)
  }

  async function search(among: Operation[], numRuns: number): Promise<void> {
    const property = fc.asyncProperty(pick(among).chain(requestOf), async (request) => {
      const { operation, path } = request
      const { status, text, headers, json } = await api.raw(operation.method, path, request)
      requests++
      const key = `${operation.method} ${operation.path} ${status}`
      statuses.set(key, (statuses.get(key) ?? 0) + 1)
      if (status === 201 && typeof json.name === 'string') created.push(json.name)
      const type = String(headers['content-type'])
      const problem = description.problemOf({ ...operation, path, status, type, body: jsonOf(text, json) })
      if (problem !== undefined) throw new Error(`${status} ${text.slice(0, 200)}: ${problem}`)
      if (status >= 500) throw new Error(`${status} ${text}`)
      // A reader shows its password in this header, and gets 403 for a wrong one.
      const isAnonymous = !request.token && !('authorization' in request.headers)
      if (operation.isGuarded && isAnonymous && status !== 401) throw new Error(`${status} without a token`)
    })
    await fc.assert(property, { numRuns })
  }

  /** Prefers operations with a body or parameters, because their requests vary more. */
  function pick(among: Operation[]) {
    const weighted = among.map((operation) => {
      // The many operations for operators all refuse the tokens of this test.
      const isForOperators = operation.path.startsWith('/operate/')
      const weight = operation.body && !isForOperators ? 8 : operation.parameters.length > 0 ? 4 : 1
      return { weight, arbitrary: fc.constant(operation) }
    })
    return fc.oneof(...weighted)
  }

  function requestOf(operation: Operation) {
    const { body: schema } = operation
    const isForOperators = operation.path.startsWith('/operate/')
    return fc.record({
      operation: fc.constant(operation),
      path: pathOf(operation),
      body: schema ? fc.oneof({ weight: 4, arbitrary: bodyOf(schema) }, nonsense) : fc.constant(undefined),
      token: fc.oneof(
        { weight: 8, arbitrary: fc.constant(token) },
        // Requests below `/operate` never carry the operator's token. With this token, commands could void all tokens
        // or remove the users.
        fc.constantFrom(isForOperators ? 'x.y' : operator, refreshToken, undefined, 'x.y.z'),
      ),
      headers: fc.oneof({ weight: 12, arbitrary: fc.constant({}) }, oddHeaders),
    })
  }

  function pathOf({ path, parameters }: Operation): fc.Arbitrary<string> {
    const values = parameters.map(({ schema }) =>
      fc.oneof(
        { weight: 'enum' in schema ? 20 : 2, arbitrary: fitting(schema).map(String) },
        { weight: 1, arbitrary: fc.constantFrom(...known) },
        { weight: 2, arbitrary: fc.nat().map((at) => created[at % created.length] ?? '') },
        fc.string({ minLength: 1, unit: 'grapheme' }),
      ),
    )
    return fc.tuple(...values).map((texts) => {
      const filled = texts.reduce(
        (made, text) =>
          made.replace(/\{\w+\}/, () => encodeURIComponent(text.replace(/\p{Cs}/gu, '') || 'x')),
        path,
      )
      return filled.replace(/\/(\.{1,2})(?=\/|$)/g, '/x')
    })
  }

  function bodyOf(schema: Json): fc.Arbitrary<string> {
    const whole = fitting(schema)
    const broken = fc
      .tuple(whole, fc.jsonValue(), fc.nat())
      .map(([value, other, at]) => replaced(value, other, at))
    return fc.oneof({ weight: 3, arbitrary: whole }, broken).map((value) => JSON.stringify(value) ?? 'null')
  }

  /** A value that fits a schema, or nearly fits it. */
  function fitting(schema: Json): fc.Arbitrary<unknown> {
    if (typeof schema.$ref === 'string') return fitting(object(schemas[schema.$ref.split('/').at(-1) ?? '']))
    if (Array.isArray(schema.anyOf)) return fc.oneof(...schema.anyOf.map((one) => fitting(object(one))))
    if (schema.const !== undefined) return fc.constant(schema.const)
    if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum)
    const types = [schema.type].flat()
    return fc.oneof(...types.map((type) => typedValue(String(type), schema)))
  }

  function typedValue(type: string, schema: Json): fc.Arbitrary<unknown> {
    switch (type) {
      case 'object':
        return objectOf(schema)
      case 'array':
        return fc.array(fitting(object(schema.items)), {
          minLength: Number(schema.minItems ?? 0),
          maxLength: 3,
        })
      case 'boolean':
        return fc.boolean()
      case 'number':
      case 'integer':
        return fc.oneof(
          fc.integer({ min: 1, max: 1000 }),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
        )
      case 'null':
        return fc.constant(null)
      default:
        return fc.oneof({ weight: 3, arbitrary: textOf(schema) }, fc.string({ unit: 'binary' }))
    }
  }

  function textOf({ pattern, format }: Json): fc.Arbitrary<string> {
    if (format === 'email') return fc.emailAddress()
    if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern))
    return fc.oneof(fc.constantFrom(...known), fc.string())
  }

  function objectOf(schema: Json): fc.Arbitrary<unknown> {
    const properties = Object.entries(object(schema.properties))
    const required = Array.isArray(schema.required) ? schema.required : []
    const fields = Object.fromEntries(properties.map(([name, value]) => [name, fitting(object(value))]))
    const made = fc.record(fields, { requiredKeys: required })
    const examples = Array.isArray(schema.examples) ? schema.examples : []
    // The examples of the description come closest to the requests of real clients.
    return examples.length > 0 ? fc.oneof(made, fc.constantFrom(...examples)) : made
  }
})

const nonsense = fc.oneof(
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom('', '{', '{}', '[]', '{"a":1,"a":2}', '['.repeat(1000)),
)

const oddHeaders = fc.constantFrom<Record<string, string>>(
  { 'content-type': 'text/plain' },
  { 'content-type': 'application/json; charset=latin1' },
  { 'content-type': ';;;' },
  { 'content-encoding': 'gzip' },
  { expect: '100-continue' },
  { accept: 'image/png' },
  { authorization: 'Basic eDp5' },
)

/** A copy of the value with one part replaced, left out or added. `at` picks the part. */
function replaced(value: unknown, other: unknown, at: number): unknown {
  if (typeof value !== 'object' || value === null) return other
  const keys = Object.keys(value)
  const key = keys[at % (keys.length + 1)]
  if (key === undefined) return Array.isArray(value) ? [...value, other] : { ...value, unknown: other }
  const part: unknown = Reflect.get(value, key)
  const changed = at % 3 === 0 ? undefined : replaced(part, other, Math.floor(at / 7))
  return Array.isArray(value)
    ? value.map((item, index) => (String(index) === key ? changed : item))
    : { ...value, [key]: changed }
}

/** The value of a JSON text. If the text is not JSON: `parsed`, what the API client made of it. */
function jsonOf(text: string, parsed: Json): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return parsed
  }
}
