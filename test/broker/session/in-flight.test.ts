import { once } from 'node:events'
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { generate } from 'mqtt-packet'
import t from 'tap'
import { MqttConnection } from '../../../broker/connection/connection.ts'
import { type Flight, InFlight } from '../../../broker/session/in-flight.ts'
import { createHalfReceived } from '../../../listener/half-received.ts'
import { defaultLimits } from '../../default-limits.ts'

const fallsTo = (inFlight: InFlight, count: number) =>
  inFlight.fallsTo(count, 60_000, () => {
    throw new Error('no message has ended')
  })

/** Few identifiers, so steps often meet the same one; after 65,535 comes 1. */
const identifiers = [65_532, 65_533, 65_534, 65_535, 1, 2, 3, 4, 5]
const id = fc.constantFrom(...identifiers)
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ send: fc.constant('qos1' as Flight) }) },
  fc.record({ send: fc.constantFrom<Flight>('qos2', 'released') }),
  { weight: 3, arbitrary: fc.record({ finish: id }) },
  { weight: 3, arbitrary: fc.record({ endFirst: id }) },
  fc.record({ change: id, to: fc.constantFrom<Flight>('released', 'qos1') }),
)

t.test('in whatever order messages are sent and acknowledged, it holds what a map would', async (t) => {
  const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const [inFlight, map] = [new InFlight(), new Map<number, Flight>()]
    let at = 0
    for (const step of steps) {
      if ('finish' in step) {
        inFlight.delete(step.finish)
        map.delete(step.finish)
      } else if ('endFirst' in step) {
        const flight = map.get(step.endFirst)
        if (!inFlight.endFirst(step.endFirst)) continue
        if (flight !== 'qos1') return false
        map.delete(step.endFirst)
      } else if ('change' in step) {
        inFlight.set(step.change, step.to)
        map.set(step.change, step.to)
      } else {
        const free = identifiers.map((_, index) => identifiers[(at + index) % identifiers.length] ?? 0)
        const next = free.find((id) => !map.has(id))
        if (next === undefined) continue
        at = identifiers.indexOf(next) + 1
        inFlight.set(next, step.send)
        map.set(next, step.send)
      }
      const same = identifiers.every(
        (id) => inFlight.get(id) === map.get(id) && inFlight.has(id) === map.has(id),
      )
      if (!same || inFlight.size !== map.size) return false
    }
    return true
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 3000 }))
})

t.test('every identifier can be in flight at once', async (t) => {
  const inFlight = new InFlight()
  for (let id = 1; id <= 65_535; id++) inFlight.set(id, 'qos1')
  t.equal(inFlight.size, 65_535)
  for (let id = 65_535; id > 0; id--) inFlight.delete(id)
  t.equal(inFlight.size, 0)
})

t.test('the first of those in a row ends, and no other', async (t) => {
  const inFlight = new InFlight()
  for (const id of [65_535, 1, 2]) inFlight.set(id, 'qos1')
  inFlight.set(9, 'qos2')
  t.same(
    [1, 65_535, 65_535, 9, 1, 2, 2].map((id) => inFlight.endFirst(id)),
    [false, true, false, false, true, true, false],
  )
  t.equal(inFlight.size, 1)
})

t.test('what persistent sessions are owed comes in the order it was sent in', async (t) => {
  const inFlight = new InFlight()
  const owed = (position: number, fields = {}) => ({
    position,
    qos: 1 as const,
    retain: false,
    dup: false,
    ...fields,
  })
  for (const id of [3, 1, 2]) inFlight.set(id, owed(id))
  inFlight.set(4, 'qos1')
  inFlight.set(3, owed(3, { released: true }))
  t.strictSame(
    [...inFlight.owed()].map(({ position, released }) => [position, released]),
    [
      [3, true],
      [1, undefined],
      [2, undefined],
    ],
  )
  inFlight.clear()
  t.equal(inFlight.size, 0)
})

t.test('who waits for room goes on once enough has ended, in whatever way', async (t) => {
  const ways: Record<string, (inFlight: InFlight) => void> = {
    'in their order': (inFlight) => inFlight.endFirst(2),
    'out of turn': (inFlight) => inFlight.delete(3),
    'of QoS 2': (inFlight) => inFlight.delete(4),
    'all at once': (inFlight) => inFlight.clear(),
  }
  for (const [how, end] of Object.entries(ways)) {
    const inFlight = new InFlight()
    for (const id of [1, 2, 3]) inFlight.set(id, 'qos1')
    inFlight.set(4, 'qos2')
    t.equal(await fallsTo(inFlight, 4), true)
    let goesOn = false
    const waiting = fallsTo(inFlight, 2).then(() => {
      goesOn = true
    })
    inFlight.endFirst(1)
    await new Promise(setImmediate)
    t.notOk(goesOn, how)
    end(inFlight)
    await waiting
  }
})

t.test('nobody waits on for a client that has gone, or behind a later one', async (t) => {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  const limits = { ...defaultLimits, maxPacket: 1024, maxConnectPacket: 1024, outgoingBuffer: 1024 }
  const unexpected = () => {
    t.fail('nothing else happens')
  }
  const connection = new MqttConnection(socket, '127.0.0.1', limits, () => ({
    connecting: () => {},
    collect: (_isBeforeLogIn, end) => createHalfReceived(1024, 1024).collect(end),
    deliveryAcknowledged: unexpected,
    publish: unexpected,
    subscribe: async () => unexpected(),
    unsubscribe: async () => unexpected(),
    cut: unexpected,
    dropped: unexpected,
    countBytes: createHalfReceived(1024, 1024).countBytes,
    publishes: () => true,
    publishing: () => true,
    requesting: () => true,
    release: () => Promise.resolve(),
  }))
  socket.push(generate({ cmd: 'connect', clientId: 'radio', protocolId: 'MQTT', clean: false }))
  await once(connection, 'readable')
  const inFlight = new InFlight()
  inFlight.set(1, 'qos1')
  connection.open(inFlight)
  const first = fallsTo(inFlight, 0)
  const second = fallsTo(inFlight, 0)
  t.equal(await first, false)
  connection.destroy()
  t.equal(await second, false)
  t.equal(inFlight.size, 1, 'it is still not acknowledged')
})
