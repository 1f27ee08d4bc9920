import fc from 'fast-check'
import t from 'tap'
import type { Qos } from '../../../broker/connection/protocol.ts'
import { createSubscriptions } from '../../../broker/session/subscriptions.ts'
import { checkTopicFilter, filterMatches } from '../../../event/topic.ts'

const level = fc.constantFrom('a', 'b', '', '+', '$s')
const filter = fc
  .tuple(fc.array(level, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([levels, wild]) => [...levels, ...(wild ? ['#'] : [])].join('/'))
  .filter((text) => checkTopicFilter(text) === undefined)
const topic = fc
  .array(fc.constantFrom('a', 'b', '', '$s'), { minLength: 1, maxLength: 4 })
  .map((levels) => levels.join('/'))
  .filter((text) => text.length > 0)

t.test('a topic finds exactly the holders of the filters that match it, at the highest QoS', async (t) => {
  const subscribed = fc.array(fc.tuple(filter, fc.constantFrom('x', 'y', 'z'), fc.constantFrom<Qos>(0, 1, 2)))
  const property = fc.property(subscribed, topic, (entries, name) => {
    const subscriptions = createSubscriptions<string>()
    const held = new Map(entries.map(([text, holder, qos]) => [`${holder} ${text}`, { text, holder, qos }]))
    for (const { text, holder, qos } of held.values()) subscriptions.add(text, holder, qos)
    const expected = new Map<string, number>()
    for (const { text, holder, qos } of held.values()) {
      if (filterMatches(text, name)) expected.set(holder, Math.max(expected.get(holder) ?? 0, qos))
    }
    const sorted = (map: ReadonlyMap<string, number>) => JSON.stringify([...map].sort())
    return sorted(subscriptions.match(name)) === sorted(expected)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 2000 }))
})

t.test('what was added and removed leaves nothing behind', async (t) => {
  const property = fc.property(fc.array(filter), topic, (filters, name) => {
    const subscriptions = createSubscriptions<string>()
    for (const text of filters) subscriptions.add(text, 'x', 1)
    for (const text of filters) subscriptions.remove(text, 'x')
    return subscriptions.match(name).size === 0
  })
  t.doesNotThrow(() => fc.assert(property))
})

t.test('names of object properties are ordinary levels', async (t) => {
  const subscriptions = createSubscriptions<string>()
  subscriptions.add('__proto__/constructor', 'x', 1)
  t.equal(subscriptions.match('__proto__/constructor').size, 1)
  t.equal(subscriptions.match('toString').size, 0)
})
