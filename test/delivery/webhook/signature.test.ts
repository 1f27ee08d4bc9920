import t from 'tap'
import { maxSecrets, signatureHeaders, withNewSecret } from '../../../delivery/webhook/signature.ts'

const now = Date.parse('2026-03-01T12:00:00.700Z')
const day = 24 * 60 * 60_000
const message = { messageId: '123', body: Buffer.from('{"title":"Grüße"}') }

t.test('a signature is that of the standard: an example computed with openssl', async (t) => {
  // printf '%s' '123.1772366400.{"title":"Grüße"}' | openssl dgst -sha256 -hmac secret -binary | base64
  t.strictSame(signatureHeaders(message, [{ secret: 'whsec_c2VjcmV0' }], now), {
    'webhook-id': '123',
    'webhook-timestamp': '1772366400',
    'webhook-signature': 'v1,0DhJtzF9ei3UXnbkW/rA87RAsFcNUe3JemNTAcsw5Ik=',
  })
})

t.test('without a secret a push has no such fields', async (t) => {
  t.strictSame(signatureHeaders(message, undefined, now), {})
})

t.test('each attempt is signed with its own time', async (t) => {
  const secrets = withNewSecret(undefined, now)
  const [first, second] = [now, now + 1_000].map((at) => signatureHeaders(message, secrets, at))
  t.not(first?.['webhook-signature'], second?.['webhook-signature'])
  t.equal(second?.['webhook-id'], '123')
})

t.test('a secret has 32 random bytes', async (t) => {
  const made = Array.from({ length: 20 }, () => withNewSecret(undefined, now)?.[0]?.secret ?? '')
  t.equal(new Set(made).size, 20)
  for (const secret of made) {
    t.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    t.equal(Buffer.from(secret.slice('whsec_'.length), 'base64').length, 32)
  }
})

t.test('all secrets that were replaced within 24 hours sign beside the present one', async (t) => {
  const first = withNewSecret(undefined, now) ?? []
  const second = withNewSecret(first, now + 1_000) ?? []
  const third = withNewSecret(second, now + 2_000) ?? []
  t.match(third, [{ until: undefined }, { until: /^2026-03-02T12:00:02/ }, { until: /^2026-03-02T12:00:01/ }])
  t.equal(third[2]?.secret, first[0]?.secret)
  const signatures = (at: number) =>
    signatureHeaders(message, third, at)['webhook-signature']?.split(' ').length
  t.same([now + 2_000, now + day + 999, now + day + 1_000, now + day + 2_000].map(signatures), [3, 3, 2, 1])
  t.equal(withNewSecret(third, now + 3 * day)?.length, 2, 'what has ended is not kept')
})

t.test(`at most ${maxSecrets} secrets sign at a time`, async (t) => {
  let secrets = withNewSecret(undefined, now)
  for (let count = 1; count < maxSecrets; count++) secrets = withNewSecret(secrets, now)
  t.equal(secrets?.length, maxSecrets)
  t.equal(withNewSecret(secrets, now), undefined)
  t.equal(withNewSecret(secrets, now + day)?.length, 2)
})

t.test('an id that no header could carry breaks no push', async (t) => {
  const headers = signatureHeaders(
    { ...message, messageId: 'a\r\nb: ü\ud800' },
    [{ secret: 'whsec_YQ==' }],
    now,
  )
  t.equal(headers['webhook-id'], 'a--b:---')
})
