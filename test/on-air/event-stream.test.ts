import t from 'tap'
import { streamBusy } from '../../bridge-https/event-stream.ts'
import { comment, eventOf, notice, retryAfter } from '../../on-air/event-stream.ts'

const topic = 'radio/urn:org:permanent-livestream:4638c4eac849c618/track/playing'

t.test('an event is one line also for readers that take Unicode line separators for line ends', async (t) => {
  const event = { title: 'Ebbe\u2028und\u2029Flut\u0085', artist: 'Mira Hollund' }
  const compact = eventOf({ topic, payload: Buffer.from(JSON.stringify(event)) }, { id: 7 }).toString()
  const spread = eventOf(
    { topic, payload: Buffer.from(JSON.stringify(event, null, 2)) },
    { id: 7 },
  ).toString()
  for (const text of [compact, spread]) {
    const [name, id, data = '', ...rest] = text.split(/\r\n|[\n\r\u0085\u2028\u2029]/)
    t.strictSame([name, id, ...rest], ['event: playing', 'id: 7', '', ''])
    t.strictSame(JSON.parse(data.slice('data: '.length)).event, event)
  }
})

t.test('each block has an event, for readers that make a message of any empty line', async (t) => {
  const event = eventOf({ topic, payload: Buffer.from('{"title":"Ebbe"}') }, { id: 7 })
  const pieces = [retryAfter(1000), event, notice('ready', {}, 7), comment, comment, event, streamBusy.body]
  const blocks = pieces.join('').split('\n\n').slice(0, -1)
  t.strictSame(
    blocks.filter((block) => !block.includes('\ndata: ')),
    [],
  )
  t.equal(blocks.length, 4)
})
