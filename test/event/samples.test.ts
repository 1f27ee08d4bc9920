import t from 'tap'
import type { ErrorItem } from '../../event/error.ts'
import { parseJson } from '../../event/json.ts'
import { eventKinds } from '../../event/kind.ts'
import { checkShape } from '../../event/shape.ts'
import { loadSamples, type Sample } from '../samples/load.ts'

const now = Date.now()
const accepted = loadSamples('accepted', now)
const refused = loadSamples('refused', now)
/** Samples that the hub refuses for their size, before it reads their payload. */
const tooLarge = refused.filter(({ expect }) =>
  expect.errors.some((error) => error.errorCode === 'payload.size'),
)

t.test('accepted samples have a valid shape', async (t) => {
  for (const sample of accepted) t.strictSame(check(sample, 'mqtt'), [], `${sample.file}: ${sample.why}`)
})

t.test('invalid samples have exactly the errors they name', async (t) => {
  const invalid = refused.filter(({ expect }) => expect.outcome === 'invalid')
  for (const sample of invalid.filter((sample) => !tooLarge.includes(sample))) {
    t.strictSame(
      summary(check(sample, 'mqtt')),
      summary(sample.expect.errors),
      `${sample.file}: ${sample.why}`,
    )
  }
})

t.test('blocked samples have a valid shape', async (t) => {
  const blocked = refused.filter(({ expect }) => expect.outcome === 'blocked')
  for (const sample of blocked) t.strictSame(check(sample, 'mqtt'), [], `${sample.file}: ${sample.why}`)
})

t.test('both doors agree on the shape of samples that are for both', async (t) => {
  for (const sample of [...accepted, ...refused].filter(({ door }) => door === 'both')) {
    if (tooLarge.includes(sample)) continue
    t.strictSame(
      summary(check(sample, 'https')),
      summary(sample.expect.errors),
      `${sample.file}: ${sample.why}`,
    )
  }
})

t.test('the samples for the size limit lie on both sides of it', async (t) => {
  t.strictSame(
    tooLarge.map(({ payload }) => payload.length),
    [409_601],
  )
  t.equal(accepted.find(({ file }) => file === 'accepted/size-limit.json')?.payload.length, 409_600)
  for (const { file, payload } of [...accepted, ...refused]) t.ok(payload.length <= 409_601, file)
})

t.test('no placeholder is left in a sample', async (t) => {
  for (const { file, payload, expect } of [...accepted, ...refused]) {
    t.notMatch(payload.toString() + JSON.stringify(expect), /\{\{/, file)
  }
})

function check({ payload }: Sample, protocol: 'mqtt' | 'https'): ErrorItem[] {
  const parsed = parseJson(payload)
  if ('errors' in parsed) return parsed.errors
  const urlEventName = protocol === 'https' ? { urlEventName: nameOf(payload) } : {}
  const shape = checkShape(parsed.value, { protocol, now, ...urlEventName })
  return 'errors' in shape ? shape.errors : []
}

/** The event name that an HTTPS publisher would have put into the URL. */
function nameOf(payload: Buffer): string {
  const taken = eventKinds.filter(({ doors }) => doors.includes('https')).map(({ name }) => name)
  return taken.find((name) => payload.includes(name)) ?? 'de.org.hub.v1.radio.track.playing'
}

function summary(errors: readonly { path: string; errorCode: string }[]): string[] {
  return errors.map(({ path, errorCode }) => `${path} ${errorCode}`).toSorted()
}
