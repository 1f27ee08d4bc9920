import t from 'tap'
import { createEventIds } from '../../event/format.ts'
import type { Message } from '../../event/message.ts'
import type { EventRow } from '../../journal/history/event-row.ts'
import type { Store } from '../../store/store.ts'
import { openBroker } from '../conformance/peers.ts'

const institutionId = 'urn:org:institution:1'
const report: Message = {
  topic: `feedback/${institutionId}`,
  qos: 1,
  queue: { keep: 'every' },
  isReport: true,
  payload: Buffer.from(JSON.stringify({ id: '1', outcome: 'published', services: ['one'], errors: [] })),
}
const event = (bytes: number): Message => ({
  topic: 'radio/one/track',
  stream: 'one',
  qos: 1,
  queue: { keep: 'latest' },
  payload: Buffer.from(JSON.stringify({ id: '1', title: 'x'.repeat(bytes) })),
})

t.test('whoever follows gets the same row, which is made once', async (t) => {
  const { broker } = await openBroker(t)
  const rows: Record<string, EventRow[]> = { one: [], two: [] }
  const ends = ['one', 'two'].map((name) => broker.history.onDecided((row) => rows[name]?.push(row)))
  await broker.distribute([event(1), report])
  t.equal(rows.one?.length, 1)
  t.equal(rows.one?.[0], rows.two?.[0])
  ends[0]?.()
  ends[0]?.()
  await broker.distribute([event(1), report])
  t.same([rows.one?.length, rows.two?.length], [1, 2])
  ends[1]?.()
  await broker.distribute([event(1), report])
  t.same([rows.one?.length, rows.two?.length], [1, 2])
})

t.test('events of several institutions are one list, the newest first', async (t) => {
  const { broker } = await openBroker(t)
  const other = 'urn:org:institution:other'
  for (let nth = 0; nth < 3; nth++) {
    await broker.distribute([event(10), report])
    await broker.distribute([{ ...report, topic: `feedback/${other}` }])
  }
  const { events, next } = await broker.history.list({ institutionIds: [institutionId, other], limit: 10 })
  t.same(
    events.map((row) => row.institutionId),
    [other, institutionId, other, institutionId, other, institutionId],
  )
  t.equal(next, null)
})

t.test('a page ends where its reports and their events are too many bytes', async (t) => {
  const { broker } = await openBroker(t)
  const count = 100
  for (let nth = 0; nth < count; nth++) await broker.distribute([event(400_000), report])
  const first = await broker.history.list({ institutionIds: [institutionId], limit: 1_000 })
  t.ok(first.events.length >= 80 && first.events.length < count, `${first.events.length} of ${count}`)
  const { events, next } = await broker.history.list({
    institutionIds: [institutionId],
    limit: 1_000,
    before: first.next ?? undefined,
  })
  t.equal(first.events.length + events.length, count)
  t.equal(next, null)
})

t.test('the list of a livestream reads only those reports of its institution that have errors', async (t) => {
  const { broker } = await openBroker(t)
  const count = 100
  const large = { ...report, payload: Buffer.concat([report.payload, Buffer.alloc(400_000, ' ')]) }
  const refusal = { outcome: 'blocked', services: ['one'], errors: [{ errorCode: 'service.unknown' }] }
  for (let nth = 0; nth < count; nth++) await broker.distribute([event(10), large])
  await broker.distribute([{ ...report, payload: Buffer.from(JSON.stringify(refusal)), hasErrors: true }])
  const { events, next } = await broker.history.list({
    livestream: { id: 'one', owner: institutionId },
    limit: 1_000,
  })
  t.match(events, [{ outcome: 'blocked' }, { outcome: 'published', title: 'xxxxxxxxxx' }])
  t.equal(events.length, count + 1)
  t.equal(next, null)
})

t.test('an institution that asks for an event reads nothing of what others publish', async (t) => {
  const reads = { count: 0 }
  const { broker } = await openBroker(t, { wrapStore: counting(reads) })
  const newId = createEventIds()
  const publish = async (institution: string) => {
    const id = newId()
    const payload = Buffer.from(JSON.stringify({ id, outcome: 'published', services: ['one'], errors: [] }))
    const message = { ...event(1), institutionId: institution, payload: Buffer.from(JSON.stringify({ id })) }
    await broker.distribute([message, { ...report, topic: `feedback/${institution}`, payload }])
    return id
  }
  const mine = await publish(institutionId)
  const theirs = await publish('urn:org:institution:other')
  const asked = async (id: string) => {
    reads.count = 0
    const answer = await broker.history.find.ofInstitution(id, institutionId)
    return { answer, read: reads.count }
  }
  const nobodys = newId()
  const missed = { answer: { found: undefined, isWhole: true }, read: (await asked(nobodys)).read }
  for (let nth = 0; nth < 20; nth++) await publish('urn:org:institution:other')
  t.same(await asked(nobodys), missed, 'however much others publish')
  t.same(await asked(theirs), missed, 'also of an event that another institution has')
  t.match((await asked(mine)).answer, { found: { messages: [{ institutionId }] }, isWhole: true })
})

t.test('of an event that is not meant, nothing is read but what its position has', async (t) => {
  const reads = { count: 0 }
  const { broker } = await openBroker(t, { wrapStore: counting(reads) })
  const id = createEventIds()()
  const payload = Buffer.from(JSON.stringify({ id, outcome: 'published', services: ['one'], errors: [] }))
  const message = { ...event(1), institutionId, payload: Buffer.from(JSON.stringify({ id })) }
  await broker.distribute([message, { ...report, payload }])
  const { at } = broker.history.find
  reads.count = 0
  for (const position of [1, 2]) t.equal(await at(position, () => false), undefined)
  t.equal(reads.count, 0)
  for (const position of [1, 2]) t.match(await at(position, () => true), { messages: [{ position: 1 }] })
})

t.test('an event is found by its message alone, by the institution that published it', async (t) => {
  const limits = { history: 2, queueLimit: 3, windowBytes: 1 }
  const { broker } = await openBroker(t, { limits })
  const id = createEventIds()()
  const payload = Buffer.from(JSON.stringify({ id }))
  await broker.distribute([{ ...event(1), institutionId, payload }])
  for (let time = 0; time < 4; time++) {
    await broker.distribute([{ ...event(1), stream: 'other' }])
    await broker.trimming.sweep()
  }
  t.match(await broker.history.find.ofInstitution(id, institutionId), { found: { messages: [{ payload }] } })
  const others = await broker.history.find.ofInstitution(id, 'urn:org:institution:other')
  t.same(others, { found: undefined, isWhole: true })
})

/** Counts the records that ranges of a store yield. */
function counting(reads: { count: number }) {
  return (store: Store): Store => ({
    ...store,
    async *range(prefix, bounds) {
      for await (const record of store.range(prefix, bounds)) {
        reads.count++
        yield record
      }
    },
  })
}
