import t, { type Test } from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { type Becomes, type DialectSample, loadDialects } from '../../samples/load.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'

const samples = loadDialects(Date.now())
const institutions = [...new Set(samples.map(({ institution }) => institution))]

t.test('there are at least 60 samples, of both forms and of many senders', async (t) => {
  t.ok(samples.length >= 60, `${samples.length}`)
  t.ok(new Set(samples.map(({ origin }) => origin)).size >= 10)
})

for (const dialects of ['all', 'document'] as const) {
  t.test(`samples of both forms, with HUB_DIALECTS=${dialects}`, async (t) => {
    const hub = await startTestHub(t, { HUB_DIALECTS: dialects, HUB_PUBLISH_RATE: '0' })
    await t.test('over MQTT', async (t) => {
      const publish = await openMqtt(t, hub)
      for (const sample of samples) matches(t, sample, sample[dialects], await publish(sample))
    })
    await t.test('over HTTPS', async (t) => {
      const publish = await openHttps(t, hub)
      for (const sample of samples) matches(t, sample, sample.https, await publish(sample))
    })
  })
}

/** What became of an event: what subscribers got, or why it was refused. */
interface Outcome {
  event?: Record<string, unknown>
  warnings: Item[]
  errors: Item[]
}

interface Item {
  path: string
  errorCode: string
}

function matches(t: Test, { file, why, sent }: DialectSample, expected: Becomes, outcome: Outcome): void {
  const name = `${file}: ${why}`
  if ('errors' in expected) {
    t.same(listed(outcome.errors), listed(expected.errors), name)
    t.same(outcome.event, undefined, name)
    return
  }
  const event = expected.becomes === 'as sent' ? sent : expected.becomes
  t.same(outcome.errors, [], name)
  t.same(withoutIds(outcome.event, event), withoutIds(event, event), name)
  t.same(listed(outcome.warnings), listed(expected.warnings ?? []), name)
}

/** The event without the ids that the hub gives. An id of a service that is expected stays. */
function withoutIds(event: unknown, expected: Record<string, unknown>): Record<string, unknown> {
  const { id: _given, event: _name, services, ...rest } = Object(event)
  const listed = Object(expected).services
  return {
    ...rest,
    services: services.map(({ id, topic: _topic, ...service }: Record<string, unknown>, index: number) =>
      Object.hasOwn(listed[index], 'id') ? { id, ...service } : service,
    ),
  }
}

function listed(items: readonly Item[]): string[] {
  return items.map(({ path, errorCode }) => `${path} ${errorCode}`).toSorted()
}

async function openMqtt(t: Test, hub: TestHub): Promise<(sample: DialectSample) => Promise<Outcome>> {
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const publishers = new Map(
    await Promise.all(
      institutions.map(async (id) => {
        return [id, await connectPublisher(t, hub, await hub.publisher([id]), id)] as const
      }),
    ),
  )
  return async ({ institution, sent }) => {
    const report = await publishers.get(institution)?.publish(sent)
    if (!report) throw new Error(`no publisher of ${institution}`)
    const { errors, id } = report
    // Other warnings are about the content of an event.
    const warnings = (report.warnings ?? []).filter(({ errorCode }) => errorCode.startsWith('dialect.'))
    if (report.outcome !== 'published') return { warnings, errors }
    const { json } = await app.received.until(({ json }) => json.id === id)
    return { event: json, warnings, errors }
  }
}

async function openHttps(t: Test, hub: TestHub): Promise<(sample: DialectSample) => Promise<Outcome>> {
  const api = await openApi(t, hub)
  const tokens = new Map(
    await Promise.all(institutions.map(async (id) => [id, (await addUser(hub, api, id)).token] as const)),
  )
  return async ({ institution, sent }) => {
    const name = typeof sent.event === 'string' ? sent.event : 'de.org.hub.v1.radio.track.playing'
    const path = `/events/${name.endsWith('.text') ? 'de.org.hub.v1.radio.track.playing' : name}?dryRun=true`
    const { status, json } = await api.call('POST', path, { token: tokens.get(institution), body: sent })
    const { errors = [], event }: { errors?: Item[]; event?: Record<string, unknown> } = Object(json)
    const named = errors.map(({ path, errorCode }) => ({ path: path.replace(/^\.body/, ''), errorCode }))
    return { warnings: [], errors: named, ...(status === 201 && named.length === 0 && event && { event }) }
  }
}
