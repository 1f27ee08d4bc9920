import t from 'tap'
import type { Sent } from './judge.ts'
import { overlaps, wrongAtWebhook, wrongWorth } from './judge-webhooks.ts'
import type { Attempt } from './webhooks.ts'

const second = 1_000
/** Track `marker` of livestream L, accepted after so many seconds. */
const track = (marker: string, seconds: number): Sent => ({
  marker,
  kind: 'track',
  livestream: 'L',
  topic: 'radio/L/track/playing',
  sentAt: seconds * second,
  attempts: 1,
  acknowledgedAt: seconds * second,
})
const attempt = (marker: string, from: number, until = from, fields: Partial<Attempt> = {}): Attempt => ({
  webhook: 'w',
  livestream: 'L',
  marker,
  from: from * second,
  until: until * second,
  isAcknowledged: true,
  ...fields,
})
const sent = [track('a', 0), track('b', 60), track('c', 120)]

t.test('a webhook that gets every track', async (t) => {
  const wrong = (...attempts: Attempt[]) => wrongAtWebhook(attempts, 'w', 'L', sent)
  t.same(wrong(attempt('a', 1), attempt('b', 61), attempt('c', 121)), [])
  t.same(wrong(attempt('a', 1), attempt('a', 2), attempt('b', 61), attempt('c', 121)), [], 'a repetition')
  t.match(wrong(attempt('a', 1), attempt('c', 121)), [/never got b/])
  t.match(wrong(attempt('a', 1), attempt('c', 121), attempt('b', 122)), { length: 1 }, 'the order')
  t.match(wrong(attempt('a', 1), attempt('b', 61), attempt('c', 121, 121, { isAcknowledged: false })), [
    /never got c/,
  ])
})

t.test('a webhook that gets what is not over', async (t) => {
  const wrong = (...attempts: Attempt[]) => wrongWorth(attempts, 'w', 'L', sent)
  t.same(wrong(attempt('a', 1), attempt('c', 121)), [], 'it may lack what is over')
  t.match(wrong(attempt('a', 1), attempt('b', 61)), [/never got c, which plays now/])
  t.match(wrong(attempt('a', 100), attempt('c', 121)), [/got a, which was over/])
  t.match(wrong(attempt('c', 121), attempt('b', 122)), { length: 1 }, 'the order')
})

t.test('one push at a time', async (t) => {
  t.same(
    overlaps([attempt('a', 1, 2), attempt('b', 2, 3), attempt('b', 4, 5)], () => true),
    [],
  )
  t.match(
    overlaps([attempt('a', 1, 3), attempt('b', 2, 4)], () => true),
    [/w: b while a was under way/],
  )
  const others = [attempt('a', 1, 3), attempt('b', 2, 4, { webhook: 'other' })]
  t.same(
    overlaps(others, () => true),
    [],
  )
})
