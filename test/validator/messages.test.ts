import t from 'tap'
import type { Message } from '../../event/message.ts'
import { readDialect } from '../../validator/dialect.ts'
import { describeOutcome, feedbackMessages } from '../../validator/messages.ts'
import { collectGarbage } from '../collect-garbage.ts'
import { playing, station } from '../events.ts'

t.test('a report keeps no long text of its event in memory: title, artist, creator', async (t) => {
  const kept: Message[] = []
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 200; n++) {
    const long = `${n} ${'x'.repeat(130_000)}`
    const payload = Buffer.from(
      JSON.stringify({ ...playing(station(), { title: long, artist: long }), creator: long }),
    )
    const around = { dialects: 'all', feed: undefined, institutionId: 'urn:org:institution:1' } as const
    const { event: value, creator } = readDialect(JSON.parse(payload.toString()), around)
    const arrival = { at: 0, clientId: 'publisher' }
    const errors = [{ path: '.', message: 'refused', errorCode: 'payload.json' }]
    const report = describeOutcome('invalid', value, { errors, arrival, payload })
    kept.push(...feedbackMessages(['urn:org:institution:1'], report, { payload, value, creator }))
  }
  collectGarbage()
  t.ok(process.memoryUsage().heapUsed - before < 10 * 1024 * 1024)
  t.match(kept[0]?.refused, { title: /^0 x{498}$/, artist: /^0 x{498}$/ })
  t.match(kept[0]?.creator, /^0 x{498}$/)
})
