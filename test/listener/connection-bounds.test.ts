import t from 'tap'
import { createConnectionBounds } from '../../listener/connection-bounds.ts'

t.test('places are bounded, and free again when they are left', async (t) => {
  const bounds = createConnectionBounds({ maxConnections: 2, maxConnectionsPerAddress: 0 })
  const first = bounds.enter()
  t.ok(first?.belongsTo('a'))
  t.ok(bounds.enter()?.belongsTo('a'), '0 is no limit per address')
  t.equal(bounds.enter(), undefined)
  first?.leave()
  first?.leave()
  t.ok(bounds.enter(), 'one place')
  t.equal(bounds.enter(), undefined, 'and only one, however often it was left')
})

t.test('an address has a bound of its own', async (t) => {
  const bounds = createConnectionBounds({ maxConnections: 10, maxConnectionsPerAddress: 1 })
  const first = bounds.enter()
  t.equal(first?.belongsTo('a'), true)
  const second = bounds.enter()
  t.equal(second?.belongsTo('a'), false)
  t.equal(bounds.enter()?.belongsTo('b'), true, 'others are not affected')
  second?.leave()
  t.equal(bounds.enter()?.belongsTo('a'), false, 'who was refused did not count')
  first?.leave()
  t.equal(bounds.enter()?.belongsTo('a'), true)
})

t.test('a connection may belong to one address after another', async (t) => {
  const bounds = createConnectionBounds({ maxConnections: 10, maxConnectionsPerAddress: 1 })
  const proxy = bounds.enter()
  t.equal(proxy?.belongsTo('a'), true)
  t.equal(proxy?.belongsTo('a'), true, 'it is no second one')
  t.equal(proxy?.belongsTo('b'), true)
  const other = bounds.enter()
  t.equal(other?.belongsTo('a'), true, 'it no longer counts for the first')
  t.equal(other?.belongsTo('b'), false)
  t.equal(bounds.enter()?.belongsTo('a'), true, 'who was refused counts for nobody')
  proxy?.belongsToNobody()
  proxy?.belongsToNobody()
  t.equal(other?.belongsTo('b'), true)
})

t.test('an IPv6 /64 is one address, and an IPv4 address in IPv6 clothes is itself', async (t) => {
  const bounds = createConnectionBounds({ maxConnections: 10, maxConnectionsPerAddress: 1 })
  const belongs = (address: string) => bounds.enter()?.belongsTo(address)
  t.equal(belongs('2001:db8:0:1::1'), true)
  t.equal(belongs('2001:db8:0:1:ffff:ffff:ffff:ffff'), false)
  t.equal(belongs('2001:db8:0:2::1'), true, 'another network')
  t.equal(belongs('192.0.2.1'), true)
  t.equal(belongs('::ffff:192.0.2.1'), false)
})

t.test('the connections of other workers count', async (t) => {
  const others = new Map([
    ['mqtt', 3],
    ['mqtt a', 1],
  ])
  const told: [string, number][] = []
  const counts = {
    add: (key: string, by: number) => void told.push([key, by]),
    ofOthers: (key: string) => others.get(key) ?? 0,
  }
  const bounds = createConnectionBounds({
    maxConnections: 5,
    maxConnectionsPerAddress: 2,
    room: { ofOne: 10, all: 10, open: 0 },
    together: { name: 'mqtt', counts },
  })
  const first = bounds.enter()
  t.equal(first?.belongsTo('a'), true)
  const second = bounds.enter()
  t.equal(second?.belongsTo('a'), false)
  t.equal(bounds.enter(), undefined)
  others.set('mqtt', 4)
  second?.leave()
  t.equal(bounds.enter(), undefined)
  first?.leave()
  const sums = new Map<string, number>()
  for (const [key, by] of told) sums.set(key, (sums.get(key) ?? 0) + by)
  t.same(
    [...sums],
    [
      ['mqtt', 0],
      ['mqtt a', 0],
    ],
  )
})

t.test('listeners of one process share its room, and none takes all of it', async (t) => {
  const room = { ofOne: 3, all: 4, open: 0 }
  const bounds = () => createConnectionBounds({ maxConnections: 10, maxConnectionsPerAddress: 0, room })
  const [mqtt, https] = [bounds(), bounds()]
  const places = Array.from({ length: 4 }, mqtt.enter)
  t.same(places.map(Boolean), [true, true, true, false])
  t.ok(https.enter())
  t.equal(https.enter(), undefined, 'the process is full')
  for (const place of places) place?.leave()
  t.same(Array.from({ length: 3 }, https.enter).map(Boolean), [true, true, false])
  t.equal(room.open, 3)
})
