import t from 'tap'
import { eventKinds } from '../../event/kind.ts'
import { loadSamples } from '../samples/load.ts'
import { startTestHub } from '../start-hub.ts'
import { addUser, openApi } from './api.ts'

const names = eventKinds.filter(({ doors }) => doors.includes('https')).map(({ name }) => name)

/** The path for the payload's event type. Unknown types get the path of `track.playing`. */
function pathOf(payload: Buffer): string {
  let value: unknown
  try {
    value = JSON.parse(payload.toString())
  } catch {
    value = undefined
  }
  const event = Object(value).event
  return `/events/${names.find((name) => name === event) ?? names[0]}`
}

t.test('both doors agree on the samples that are for both', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '0' })
  const api = await openApi(t, hub)
  const users = new Map<string, string>()
  const tokenOf = async (institution: string) => {
    const token = users.get(institution) ?? (await addUser(hub, api, institution)).token
    users.set(institution, token)
    return token
  }

  await t.test('accepted ones are published, at the latest the second time', async (t) => {
    const samples = loadSamples('accepted', Date.now()).filter(({ door }) => door === 'both')
    t.ok(samples.length > 20)
    for (const { why, institution, payload, expect } of samples) {
      const token = await tokenOf(institution)
      const first = await api.call('POST', pathOf(payload), { token, body: payload })
      t.equal(first.status, 201, why)
      const { status, json } = await api.call('POST', pathOf(payload), { token, body: payload })
      t.equal(status, 201, why)
      t.match(json, { statuses: { blocked: 0, failed: 0 } }, why)
      const { services, id: _ours, ...event } = Object(json.event)
      const { services: _given, id: _theirs, ...sent } = JSON.parse(payload.toString())
      t.same(event, { ...sent, event: event.event }, 'everything else is echoed as it was sent')
      const reached = new Set(services.map(({ id }: { id: string }) => id))
      if (expect.services) t.same([...reached].sort(), [...expect.services].sort(), why)
    }
  })

  await t.test('invalid ones are explained with the same codes at the same places', async (t) => {
    const samples = loadSamples('refused', Date.now()).filter(
      ({ door, expect }) => door === 'both' && expect.outcome === 'invalid',
    )
    t.ok(samples.length > 80)
    for (const { why, institution, payload, expect } of samples) {
      const token = await tokenOf(institution)
      const { status, json } = await api.call('POST', pathOf(payload), { token, body: payload })
      const tooLarge = expect.errors.some(({ errorCode }) => errorCode === 'payload.size')
      t.equal(status, tooLarge ? 413 : 400, why)
      const errors = Array.isArray(json.errors) ? json.errors : []
      t.same(
        errors.map(({ path, errorCode }) => `${path} ${errorCode}`).sort(),
        expect.errors
          .map(({ path, errorCode }) => `${path === '.' ? '.body' : `.body${path}`} ${errorCode}`)
          .sort(),
        why,
      )
    }
  })

  await t.test('what is blocked over MQTT is not published over HTTPS either', async (t) => {
    const samples = loadSamples('refused', Date.now()).filter(
      ({ door, expect }) => door === 'both' && expect.outcome === 'blocked',
    )
    for (const { why, institution, payload } of samples) {
      const token = await tokenOf(institution)
      const { status, json } = await api.call('POST', pathOf(payload), { token, body: payload })
      t.equal(status, 201, why)
      t.ok(Object(json.statuses).blocked > 0, why)
    }
  })
})
