import t from 'tap'
import { mayPublish, mayReceive, maySubscribe } from '../../acl/access.ts'
import type { Principal } from '../../acl/principal.ts'
import { maxUrnLength } from '../../event/format.ts'

// Short names keep each row of the tables on one line.
const A = 'urn:org:institution:a'
const B = 'urn:org:institution:b'
const L = 'urn:org:permanent-livestream:1'
/** The longest possible id of a livestream. */
const longest = `urn:org:permanent-livestream:`.padEnd(maxUrnLength, '1')
const M = 'urn:org:permanent-livestream:2'

const principals: Record<string, Principal> = {
  'pub A': { role: 'publisher', username: 'pub-a-1', institutions: [A], classes: [] },
  'pub A+B': { role: 'publisher', username: 'pub-ab-1', institutions: [A, B], classes: [] },
  'pub A track': { role: 'publisher', username: 'pub-t-1', institutions: [A], classes: ['track'] },
  'pub A control+data': {
    role: 'publisher',
    username: 'pub-cd-1',
    institutions: [A],
    classes: ['control', 'data'],
  },
  'pub none': { role: 'publisher', username: 'pub-n-1', institutions: [], classes: [] },
  'sub all': { role: 'subscriber', username: 'sub-all-1', filters: ['radio/#'] },
  'sub L': { role: 'subscriber', username: 'sub-l-1', filters: [`radio/${L}/#`] },
  'sub playing': { role: 'subscriber', username: 'sub-p-1', filters: ['radio/+/track/playing'] },
  'sub tracks L': { role: 'subscriber', username: 'sub-tl-1', filters: [`radio/${L}/track/+`] },
  'sub control+data': {
    role: 'subscriber',
    username: 'sub-cd-1',
    filters: ['radio/+/control', 'radio/+/data'],
  },
  'sub none': { role: 'subscriber', username: 'sub-n-1', filters: [] },
  // Only a damaged or tampered store can hold these filters.
  'sub damaged': {
    role: 'subscriber',
    username: 'sub-d-1',
    filters: ['#', 'inbox/#', '$SYS/#', 'feedback/#'],
  },
}

type Row = [principal: keyof typeof principals, target: string, decision: string]

const publishing: Row[] = [
  // Own inboxes.
  ['pub A', `inbox/${A}`, 'allow publisher.own-inbox'],
  ['pub A', `inbox/${A}/track`, 'allow publisher.own-inbox'],
  ['pub A', `inbox/${A}/control`, 'allow publisher.own-inbox'],
  ['pub A', `inbox/${A}/data`, 'allow publisher.own-inbox'],
  ['pub A+B', `inbox/${A}`, 'allow publisher.own-inbox'],
  ['pub A+B', `inbox/${B}`, 'allow publisher.own-inbox'],
  ['pub A+B', `inbox/${B}/data`, 'allow publisher.own-inbox'],
  // Permitted classes. The inbox without a class stays open: events name their class.
  ['pub A track', `inbox/${A}`, 'allow publisher.own-inbox'],
  ['pub A track', `inbox/${A}/track`, 'allow publisher.own-inbox'],
  ['pub A track', `inbox/${A}/control`, 'topic.denied publisher.permitted-class'],
  ['pub A track', `inbox/${A}/data`, 'topic.denied publisher.permitted-class'],
  ['pub A control+data', `inbox/${A}`, 'allow publisher.own-inbox'],
  ['pub A control+data', `inbox/${A}/control`, 'allow publisher.own-inbox'],
  ['pub A control+data', `inbox/${A}/data`, 'allow publisher.own-inbox'],
  ['pub A control+data', `inbox/${A}/track`, 'topic.denied publisher.permitted-class'],
  ['pub A track', `inbox/${B}/track`, 'topic.denied publisher.own-institution'],
  ['pub A track', `inbox/${B}/control`, 'topic.denied publisher.own-institution'],
  // Dry runs (`check`) need no permitted class. Inboxes of other institutions are denied.
  ['pub A', `inbox/${A}/check`, 'allow publisher.own-inbox'],
  ['pub A track', `inbox/${A}/check`, 'allow publisher.own-inbox'],
  ['pub A', `inbox/${B}/check`, 'topic.denied publisher.own-institution'],
  ['pub A', `inbox/${B}`, 'topic.denied publisher.own-institution'],
  ['pub A', `inbox/${B}/track`, 'topic.denied publisher.own-institution'],
  ['pub A', `inbox/${A}b`, 'topic.denied publisher.own-institution'],
  ['pub A', `inbox/${A}-`, 'topic.denied publisher.own-institution'],
  ['pub A', 'inbox/urn:org:institution:aa', 'topic.denied publisher.own-institution'],
  ['pub none', `inbox/${A}`, 'topic.denied publisher.own-institution'],
  ['pub none', `inbox/${A}/track`, 'topic.denied publisher.own-institution'],
  // Not an inbox.
  ['pub A', 'inbox', 'topic.denied publisher.inbox-only'],
  ['pub A', `inbox/${A}/tracks`, 'topic.denied publisher.inbox-only'],
  ['pub A', `inbox/${A}/Track`, 'topic.denied publisher.inbox-only'],
  ['pub A', `inbox/${A}/track/playing`, 'topic.denied publisher.inbox-only'],
  ['pub A', `inbox/${A}/constructor`, 'topic.denied publisher.inbox-only'],
  ['pub A', `inbox/${A}/__proto__`, 'topic.denied publisher.inbox-only'],
  ['pub A', 'inbox/a', 'topic.denied publisher.inbox-only'],
  ['pub A', `Inbox/${A}`, 'topic.denied publisher.inbox-only'],
  ['pub A', `inbox/${A.toUpperCase()}`, 'topic.denied publisher.inbox-only'],
  ['pub A', `inbox/${L}`, 'topic.denied publisher.inbox-only'],
  ['pub A', 'inbox/urn:org:publisher:a', 'topic.denied publisher.inbox-only'],
  ['pub A', `feedback/${A}`, 'topic.denied publisher.inbox-only'],
  ['pub A', `feedback/${B}`, 'topic.denied publisher.inbox-only'],
  ['pub A', `radio/${L}/track/playing`, 'topic.denied publisher.inbox-only'],
  ['pub A', `radio/${L}/control`, 'topic.denied publisher.inbox-only'],
  ['pub A', 'radio', 'topic.denied publisher.inbox-only'],
  ['pub A', 'plugins/dts', 'topic.denied publisher.inbox-only'],
  ['pub A', '$SYS/broker/uptime', 'topic.denied publisher.inbox-only'],
  ['pub A', `$share/group/inbox/${A}`, 'topic.denied publisher.inbox-only'],
  ['pub A', 'hello', 'topic.denied publisher.inbox-only'],
  ['pub A', `x/inbox/${A}`, 'topic.denied publisher.inbox-only'],
  // Invalid topic names. Both roles get the same reason.
  ['pub A', '', 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}.b`, 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}/track.playing`, 'topic.invalid topic.name'],
  ['pub A', '.', 'topic.invalid topic.name'],
  ['pub A', `inbox/${A} `, 'topic.invalid topic.name'],
  ['pub A', ` inbox/${A}`, 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}\t`, 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}\r`, 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}\n`, 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}\u0000`, 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}\u001b[2J`, 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}\u00a0`, 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}/`, 'topic.invalid topic.name'],
  ['pub A', `/inbox/${A}`, 'topic.invalid topic.name'],
  ['pub A', `inbox//${A}`, 'topic.invalid topic.name'],
  ['pub A', '/', 'topic.invalid topic.name'],
  ['pub A', 'inbox/+', 'topic.invalid topic.name'],
  ['pub A', 'inbox/#', 'topic.invalid topic.name'],
  ['pub A', `inbox/${A}/+`, 'topic.invalid topic.name'],
  ['pub A', '#', 'topic.invalid topic.name'],
  ['pub A', 'a/'.repeat(100) + A, 'topic.invalid topic.name'],
  ['sub all', 'radio/a.b', 'topic.invalid topic.name'],
  ['sub all', '', 'topic.invalid topic.name'],
  // Subscribers never publish.
  ['sub all', `radio/${L}/track/playing`, 'topic.denied subscriber.never-publishes'],
  ['sub all', `radio/${L}/control`, 'topic.denied subscriber.never-publishes'],
  ['sub all', `inbox/${A}`, 'topic.denied subscriber.never-publishes'],
  ['sub all', `inbox/${A}/track`, 'topic.denied subscriber.never-publishes'],
  ['sub all', `feedback/${A}`, 'topic.denied subscriber.never-publishes'],
  ['sub all', 'hello', 'topic.denied subscriber.never-publishes'],
  ['sub L', `radio/${L}/data`, 'topic.denied subscriber.never-publishes'],
  ['sub none', `inbox/${A}`, 'topic.denied subscriber.never-publishes'],
  ['sub damaged', `inbox/${A}`, 'topic.denied subscriber.never-publishes'],
]

const subscribing: Row[] = [
  // Publishers may subscribe to exactly their feedback.
  ['pub A', `feedback/${A}`, 'allow publisher.own-feedback'],
  ['pub A track', `feedback/${A}`, 'allow publisher.own-feedback'],
  ['pub A+B', `feedback/${A}`, 'allow publisher.own-feedback'],
  ['pub A+B', `feedback/${B}`, 'allow publisher.own-feedback'],
  ['pub A', `feedback/${B}`, 'deny publisher.feedback-only'],
  ['pub A', 'feedback/#', 'deny publisher.feedback-only'],
  ['pub A', 'feedback/+', 'deny publisher.feedback-only'],
  ['pub A+B', 'feedback/+', 'deny publisher.feedback-only'],
  ['pub A', `feedback/${A}/#`, 'deny publisher.feedback-only'],
  ['pub A', `feedback/${A}/+`, 'deny publisher.feedback-only'],
  ['pub A', `feedback/${A}/x`, 'deny publisher.feedback-only'],
  ['pub A', `feedback/${A}/`, 'deny publisher.feedback-only'],
  ['pub A', `/feedback/${A}`, 'deny publisher.feedback-only'],
  ['pub A', `+/${A}`, 'deny publisher.feedback-only'],
  ['pub A', 'feedback', 'deny publisher.feedback-only'],
  ['pub A', 'feedback/urn:org:institution:aa', 'deny publisher.feedback-only'],
  ['pub A', '#', 'deny publisher.feedback-only'],
  ['pub A', '+/+', 'deny publisher.feedback-only'],
  ['pub A', 'radio/#', 'deny publisher.feedback-only'],
  ['pub A', `radio/${L}/track/playing`, 'deny publisher.feedback-only'],
  ['pub none', `feedback/${A}`, 'deny publisher.feedback-only'],
  ['pub none', 'feedback/', 'deny publisher.feedback-only'],
  // Reserved topics, to which nobody may subscribe.
  ['pub A', `inbox/${A}`, 'deny filter.reserved'],
  ['pub A', `inbox/${A}/track`, 'deny filter.reserved'],
  ['pub A', 'inbox/#', 'deny filter.reserved'],
  ['pub A', 'plugins/#', 'deny filter.reserved'],
  ['pub A', '$SYS/#', 'deny filter.reserved'],
  ['pub A', `$share/g/feedback/${A}`, 'deny filter.reserved'],
  ['sub all', 'inbox', 'deny filter.reserved'],
  ['sub all', 'inbox/#', 'deny filter.reserved'],
  ['sub all', 'inbox/+', 'deny filter.reserved'],
  ['sub all', `inbox/${A}`, 'deny filter.reserved'],
  ['sub all', 'plugins', 'deny filter.reserved'],
  ['sub all', 'plugins/dts', 'deny filter.reserved'],
  ['sub all', '$SYS', 'deny filter.reserved'],
  ['sub all', '$SYS/#', 'deny filter.reserved'],
  ['sub all', '$SYS/broker/clients', 'deny filter.reserved'],
  ['sub all', '$share/group/radio/#', 'deny filter.reserved'],
  ['sub all', '$queue/radio/#', 'deny filter.reserved'],
  ['sub all', '$', 'deny filter.reserved'],
  ['sub damaged', 'inbox/#', 'deny filter.reserved'],
  ['sub damaged', '$SYS/#', 'deny filter.reserved'],
  // Malformed.
  ['sub all', '', 'deny filter.form'],
  ['sub all', 'radio/#/track', 'deny filter.form'],
  ['sub all', 'radio#', 'deny filter.form'],
  ['sub all', 'radio/a+', 'deny filter.form'],
  ['sub all', 'radio/++', 'deny filter.form'],
  ['sub all', 'radio/\u0000', 'deny filter.form'],
  ['pub A', `feedback/${A}#`, 'deny filter.form'],
  // A permission for the whole radio tree.
  ['sub all', 'radio/#', 'allow subscriber.permitted-filter'],
  ['sub all', 'radio', 'allow subscriber.permitted-filter'],
  ['sub all', 'radio/+', 'allow subscriber.permitted-filter'],
  ['sub all', 'radio/+/#', 'allow subscriber.permitted-filter'],
  ['sub all', `radio/${L}/#`, 'allow subscriber.permitted-filter'],
  ['sub all', 'radio/+/track/playing', 'allow subscriber.permitted-filter'],
  ['sub all', `radio/${L}/track/+`, 'allow subscriber.permitted-filter'],
  ['sub all', `radio/${L}/control`, 'allow subscriber.permitted-filter'],
  ['sub all', 'radio/anything/at/all', 'allow subscriber.permitted-filter'],
  // Filters at the limits of depth and length, and beyond.
  ['sub all', `radio/${L}/track/playing/#`, 'allow subscriber.permitted-filter'],
  ['sub all', 'radio/+/+/+/#', 'allow subscriber.permitted-filter'],
  ['sub all', `radio/${longest}/track/playing/#`, 'allow subscriber.permitted-filter'],
  ['sub all', 'radio/+/+/+/+', 'deny filter.topic'],
  ['sub all', 'radio/+/+/+/+/#', 'deny filter.topic'],
  ['sub all', `radio/${'a/'.repeat(97)}a`, 'deny filter.topic'],
  ['sub all', `radio/${'a'.repeat(251)}`, 'deny filter.topic'],
  ['sub all', `radio/${'ä'.repeat(126)}`, 'deny filter.topic'],
  ['sub all', '#', 'deny subscriber.radio-only'],
  ['sub all', '+/#', 'deny subscriber.radio-only'],
  ['sub all', '+', 'deny subscriber.radio-only'],
  ['sub all', '+/+/track/playing', 'deny subscriber.radio-only'],
  ['sub all', '/radio/#', 'deny subscriber.radio-only'],
  ['sub all', 'radios/#', 'deny subscriber.radio-only'],
  ['sub all', 'Radio/#', 'deny subscriber.radio-only'],
  ['sub all', `feedback/${A}`, 'deny subscriber.radio-only'],
  ['sub all', 'feedback/#', 'deny subscriber.radio-only'],
  // A permission for one livestream.
  ['sub L', `radio/${L}/#`, 'allow subscriber.permitted-filter'],
  ['sub L', `radio/${L}`, 'allow subscriber.permitted-filter'],
  ['sub L', `radio/${L}/track/#`, 'allow subscriber.permitted-filter'],
  ['sub L', `radio/${L}/track/+`, 'allow subscriber.permitted-filter'],
  ['sub L', `radio/${L}/control`, 'allow subscriber.permitted-filter'],
  ['sub L', `radio/${M}/#`, 'deny subscriber.not-permitted'],
  ['sub L', `radio/${L}0/#`, 'deny subscriber.not-permitted'],
  ['sub L', 'radio/+/control', 'deny subscriber.not-permitted'],
  ['sub L', 'radio/+/#', 'deny subscriber.not-permitted'],
  ['sub L', 'radio/#', 'deny subscriber.not-permitted'],
  ['sub L', 'radio', 'deny subscriber.not-permitted'],
  ['sub L', '#', 'deny subscriber.radio-only'],
  // A permission for one event type of all livestreams.
  ['sub playing', 'radio/+/track/playing', 'allow subscriber.permitted-filter'],
  ['sub playing', `radio/${L}/track/playing`, 'allow subscriber.permitted-filter'],
  ['sub playing', `radio/${L}/track/next`, 'deny subscriber.not-permitted'],
  ['sub playing', `radio/${L}/track/+`, 'deny subscriber.not-permitted'],
  ['sub playing', `radio/${L}/track/playing/#`, 'deny subscriber.not-permitted'],
  ['sub playing', `radio/${L}/track/playing/x`, 'deny filter.topic'],
  ['sub playing', `radio/${L}/track`, 'deny subscriber.not-permitted'],
  ['sub playing', 'radio/+/+/playing', 'deny subscriber.not-permitted'],
  ['sub playing', 'radio/#', 'deny subscriber.not-permitted'],
  // A permission for all tracks of one livestream.
  ['sub tracks L', `radio/${L}/track/+`, 'allow subscriber.permitted-filter'],
  ['sub tracks L', `radio/${L}/track/playing`, 'allow subscriber.permitted-filter'],
  ['sub tracks L', `radio/${L}/track/next`, 'allow subscriber.permitted-filter'],
  ['sub tracks L', `radio/${L}/track`, 'deny subscriber.not-permitted'],
  ['sub tracks L', `radio/${L}/track/#`, 'deny subscriber.not-permitted'],
  ['sub tracks L', `radio/${L}/control`, 'deny subscriber.not-permitted'],
  ['sub tracks L', `radio/${M}/track/playing`, 'deny subscriber.not-permitted'],
  ['sub tracks L', `radio/${L}/track/a/b`, 'deny filter.topic'],
  // A permission with several filters: one of them must cover the whole requested filter.
  ['sub control+data', 'radio/+/control', 'allow subscriber.permitted-filter'],
  ['sub control+data', 'radio/+/data', 'allow subscriber.permitted-filter'],
  ['sub control+data', `radio/${M}/data`, 'allow subscriber.permitted-filter'],
  ['sub control+data', 'radio/+/+', 'deny subscriber.not-permitted'],
  ['sub control+data', `radio/${L}/+`, 'deny subscriber.not-permitted'],
  ['sub control+data', 'radio/+/track/playing', 'deny subscriber.not-permitted'],
  // No permission at all, and a damaged one.
  ['sub none', 'radio/#', 'deny subscriber.not-permitted'],
  ['sub none', `radio/${L}/control`, 'deny subscriber.not-permitted'],
  ['sub damaged', '#', 'deny subscriber.radio-only'],
  ['sub damaged', 'feedback/#', 'deny subscriber.radio-only'],
  ['sub damaged', `feedback/${A}`, 'deny subscriber.radio-only'],
]

const receiving: Row[] = [
  ['pub A', `feedback/${A}`, 'deliver'],
  ['pub A+B', `feedback/${B}`, 'deliver'],
  ['pub A', `feedback/${B}`, 'withhold'],
  ['pub A', `feedback/${A}/x`, 'withhold'],
  ['pub A', `radio/${L}/control`, 'withhold'],
  ['pub A', `inbox/${A}`, 'withhold'],
  ['pub none', `feedback/${A}`, 'withhold'],
  ['sub all', `radio/${L}/track/playing`, 'deliver'],
  ['sub all', `radio/${M}/data`, 'deliver'],
  ['sub all', `feedback/${A}`, 'withhold'],
  ['sub all', `inbox/${A}`, 'withhold'],
  ['sub all', '$SYS/uptime', 'withhold'],
  ['sub L', `radio/${L}/data`, 'deliver'],
  ['sub L', `radio/${M}/data`, 'withhold'],
  ['sub playing', `radio/${M}/track/playing`, 'deliver'],
  ['sub playing', `radio/${M}/track/next`, 'withhold'],
  ['sub control+data', `radio/${L}/control`, 'deliver'],
  ['sub control+data', `radio/${L}/track/next`, 'withhold'],
  ['sub none', `radio/${L}/control`, 'withhold'],
  ['sub damaged', `radio/${L}/control`, 'deliver'],
  ['sub damaged', `inbox/${A}`, 'withhold'],
  ['sub damaged', `feedback/${A}`, 'withhold'],
  ['sub damaged', '$SYS/uptime', 'withhold'],
]

t.test('publish decisions', async (t) => {
  for (const [name, topic, expected] of publishing) {
    const decision = mayPublish(principalCalled(name), topic)
    const text = decision.allowed ? `allow ${decision.rule}` : `${decision.code} ${decision.rule}`
    t.equal(text, expected, `${name} publishes ${JSON.stringify(topic.slice(0, 60))}: ${expected}`)
  }
})

t.test('subscribe decisions', async (t) => {
  for (const [name, filter, expected] of subscribing) {
    const { allowed, rule } = maySubscribe(principalCalled(name), filter)
    t.equal(
      `${allowed ? 'allow' : 'deny'} ${rule}`,
      expected,
      `${name} subscribes ${JSON.stringify(filter)}: ${expected}`,
    )
  }
})

t.test('delivery decisions', async (t) => {
  for (const [name, topic, expected] of receiving) {
    const text = mayReceive(principalCalled(name), topic) ? 'deliver' : 'withhold'
    t.equal(text, expected, `${topic} to ${name}: ${expected}`)
  }
})

t.test('an allowed publish says which inbox it was', async (t) => {
  const publisher = principalCalled('pub A')
  t.strictSame(mayPublish(publisher, `inbox/${A}`), {
    allowed: true,
    institutionId: A,
    rule: 'publisher.own-inbox',
  })
  t.strictSame(mayPublish(publisher, `inbox/${A}/data`), {
    allowed: true,
    institutionId: A,
    cls: 'data',
    rule: 'publisher.own-inbox',
  })
})

t.test('every refusal gives a reason', async (t) => {
  for (const [name, topic] of publishing) {
    const decision = mayPublish(principalCalled(name), topic)
    if (!decision.allowed) t.match(decision.reason, /\w/)
  }
  for (const [name, filter] of subscribing) {
    const decision = maySubscribe(principalCalled(name), filter)
    if (!decision.allowed) t.match(decision.reason, /\w/)
  }
})

t.test('the table is large enough to mean something', async (t) => {
  t.ok(publishing.length + subscribing.length + receiving.length >= 150)
})

function principalCalled(name: string): Principal {
  const principal = principals[name]
  if (principal === undefined) throw new Error(`no principal ${name}`)
  return principal
}
