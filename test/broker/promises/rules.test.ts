import t from 'tap'
import {
  broughtBySubscribe,
  type Event,
  eitherWay,
  type Filter,
  isDue,
  isKeptNow,
  isOutOfOrder,
  type Standing,
  whenAccepted,
  whenCrashed,
  whenFiltersChanged,
  whenLeft,
  whenReturned,
  whenTrimmed,
  whenWindowFull,
  withinLimit,
  wrongWith,
} from './promises.ts'

/* Tests of the rules themselves. If the rules found no fault, every sequence would pass. */

const every: Event = {
  number: 5,
  topic: 'e/1',
  keep: 'every',
  time: 50,
  qos: 1,
  accepted: 'yes',
  isKept: true,
  isWhole: true,
}
const latest: Event = { ...every, topic: 'l/1', keep: 'latest' }
const qos1 = new Map<string, Filter>([['#', { qos: 1, since: 0, perhapsSince: 0 }]])
const qos0 = new Map<string, Filter>([['#', { qos: 0, since: 0, perhapsSince: 0 }]])
const late = new Map<string, Filter>([['#', { qos: 1, since: 6, perhapsSince: 6 }]])
/** The hub granted the filter while it accepted `every` and `latest`. */
const meanwhile = new Map<string, Filter>([['#', { qos: 1, since: 6, perhapsSince: 5 }]])
const none = new Map<string, Filter>()
const waits: Standing = { is: 'waits', choice: 'newest' }
const sent: Standing = { is: 'sent', isOwed: true }
const read: Standing = { is: 'sent', isOwed: true, isRead: true }
const unconflated: Standing = { is: 'waits', choice: 'all' }
const acknowledged: Standing = { is: 'acknowledged', isKnown: true, at: 100 }
const short = (standing: Standing) =>
  [standing.is, 'why' in standing && standing.why, 'choice' in standing && standing.choice]
    .filter(Boolean)
    .join(': ')

t.test('accepted', async (t) => {
  t.equal(short(whenAccepted(every, qos1, true)), 'must')
  t.equal(short(whenAccepted(every, qos1, false)), 'waits: newest')
  t.equal(short(whenAccepted(every, qos0, true)), 'may')
  t.equal(short(whenAccepted(every, qos0, false)), 'never: QoS 0')
  t.equal(short(whenAccepted(every, none, true)), 'never: no filter')
})

t.test('left, and come back', async (t) => {
  const newer: Event = { ...latest, number: 6, time: 60 }
  const older: Event = { ...latest, number: 6, time: 40 }
  const rows: [string, Standing, Event, Event[], number?][] = [
    ['must', sent, every, []],
    ['never: acknowledged', acknowledged, every, []],
    ['may', { ...acknowledged, isKnown: false }, every, []],
    ['must', waits, every, []],
    ['never: expired', waits, { ...every, expires: 90 }, []],
    ['must', waits, { ...every, expires: 91 }, []],
    ['never: expired', sent, { ...every, expires: 90 }, []],
    ['never: expired', waits, { ...latest, expires: 90 }, []],
    ['must', waits, latest, [older]],
    ['never: superseded', waits, latest, [newer]],
    ['never: superseded', waits, older, [latest]],
    ['may', waits, latest, [{ ...newer, accepted: 'perhaps' }]],
    ['may', waits, { ...latest, accepted: 'perhaps' }, []],
    ['may', waits, { ...older, accepted: 'perhaps' }, [latest]],
    ['must', sent, latest, [newer]],
    ['may', whenLeft({ is: 'must' }), latest, [newer]],
    ['must', whenLeft({ is: 'must' }), every, []],
    ['never: QoS 0', whenLeft({ is: 'may', isQos0: true }), every, []],
    // The journal no longer keeps the event, or was trimmed since the event.
    ['may', waits, { ...every, isKept: false }, []],
    ['may', sent, { ...latest, isKept: false }, [newer]],
    ['must', sent, { ...latest, isWhole: false }, [newer]],
    ['must', read, latest, [newer]],
    ['may', read, { ...latest, isWhole: false }, [newer]],
    ['must', read, { ...latest, isWhole: false }, []],
    ['must', read, { ...every, isWhole: false }, []],
    ['must', unconflated, latest, [newer]],
    ['may', unconflated, { ...latest, isWhole: false }, [newer]],
    ['must', unconflated, { ...every, isWhole: false }, []],
  ]
  for (const [wanted, standing, event, others] of rows) {
    const found = whenReturned(standing, event, { now: 90, events: [event, ...others] }, false)
    t.equal(short(found), wanted, `${short(standing)} of ${JSON.stringify(event)}`)
  }
})

t.test('left before it came', async (t) => {
  const moment = { now: 0, events: [every] }
  for (const standing of [sent, read, unconflated]) {
    t.same(whenLeft(whenReturned(standing, every, moment, false)), standing, 'it stands where it stood')
  }
  const unsent = { is: 'waits', choice: 'newest, perhaps all', isUnsent: true }
  t.same(whenLeft({ is: 'must', isUnsent: true }), unsent)
  t.equal(short(whenReturned(sent, { ...every, isKept: false }, moment, true)), 'must', 'at QoS 2')
})

t.test('kept', async (t) => {
  const control: Event = { ...every, expires: 100 }
  const others = (count: number, like: Event) =>
    Array.from({ length: count }, (_, n) => ({ ...like, number: 6 + n, time: like.time + 1 + n }))
  const kept = (event: Event, newer: Event[], now = 50) =>
    isKeptNow(event, { now, events: [event, ...newer] }, { history: 2, queueLimit: 3 })
  t.ok(kept(latest, others(1, latest)), 'as history')
  t.notOk(kept(latest, others(2, latest)))
  t.ok(kept(latest, others(2, { ...latest, time: 20 })), 'as the retained value')
  t.ok(kept(latest, others(9, { ...latest, topic: 'l/2' })), 'others are in another stream')
  t.ok(kept(control, others(2, control)), 'while it is valid')
  t.notOk(kept(control, others(2, control), 100))
  t.notOk(kept(control, others(3, control)), 'more are not kept')
  t.ok(kept(control, others(3, { ...control, expires: 40 })), 'those that have expired do not count')
  t.ok(kept(every, others(9, every)), 'reports')
})

t.test('over the limit', async (t) => {
  const must: Standing = { is: 'must' }
  const left = (
    before: Standing[],
    after: Standing[],
    queueLimit: number,
    maxOwed: number,
    isWhole = true,
  ) => {
    const events = before.map(() => ({ isWhole }))
    const { standings, dropped } = withinLimit(before, after, events, { queueLimit, maxOwed })
    return [...standings.map(short), dropped.min, dropped.max]
  }
  const over = 'never: over the limit'
  const three = [must, must, must]
  t.same(left([waits, waits, waits], three, 3, 9), ['must', 'must', 'must', 0, 0])
  t.same(left([waits, waits, waits], three, 2, 9), [over, 'must', 'must', 1, 1])
  t.same(left([waits, waits, waits], three, 9, 2), [over, 'must', 'must', 1, 1])
  t.same(
    left([sent, waits, waits], three, 2, 9),
    ['must', 'must', 'must', 0, 0],
    'what was sent does not count',
  )
  t.same(left([sent, waits, waits], three, 9, 2), ['must', over, 'must', 1, 1], 'but with all')
  t.same(left([sent, sent, sent], three, 1, 1), ['must', 'must', 'must', 0, 0], 'and is never dropped')
  t.same(left([waits, waits, waits], [must, { is: 'may' }, must], 2, 9), ['may', 'may', 'must', 0, 1])
  const again = [unconflated, unconflated, unconflated]
  t.same(left(again, three, 1, 1), ['must', 'must', 'must', 0, 0], 'after a crash nothing is dropped')
  t.same(left(again, three, 1, 1, false), ['may', 'may', 'may', 0, 0], 'as long as the journal is whole')
  const perhapsAgain = whenReturned(
    { ...acknowledged, isKnown: false },
    every,
    { now: 0, events: [every] },
    false,
  )
  const leftAgain = whenLeft(perhapsAgain)
  t.same(
    left([sent, leftAgain, waits], [must, perhapsAgain, must], 1, 1),
    ['must', 'may', 'may', 0, 2],
    'nor when it left before all of it had come again',
  )
})

t.test('trimmed while the client holds back acknowledgements', async (t) => {
  const behind = whenTrimmed({ is: 'must' })
  const newer = { ...latest, number: 6, time: 60 }
  const due = (standing: Standing, event: Event, others: Event[] = [], now = 50) =>
    isDue(standing, event, { now, events: [event, ...others] })
  t.ok(due({ is: 'must' }, latest, [newer]))
  t.notOk(due(behind, latest, [newer]), 'only the newest comes')
  t.ok(due(behind, latest))
  t.ok(due(behind, every), 'and each control event')
  t.notOk(due(behind, { ...every, expires: 50 }), 'but what has expired')
  t.notOk(due({ is: 'must' }, { ...every, isKept: false }))
  const inFlight = whenTrimmed({ is: 'must', before: { is: 'sent', isOwed: true } })
  t.ok(due(inFlight, latest, [newer]), 'what was in flight at the log-in')
})

t.test('a crash may have sent what waits again', async (t) => {
  const session = { filters: qos1, wasConnected: true, isAfterCrash: false, isRaced: false }
  const moment = { now: 0, events: [latest] }
  const isUnsent = (standing: Standing) => 'isUnsent' in standing && standing.isUnsent
  const back = (standing: Standing) => whenWindowFull(whenReturned(standing, latest, moment, false))
  t.ok(isUnsent(back(waits)), 'without a crash')
  const behind = whenCrashed(whenTrimmed({ is: 'must' }), latest, session, () => false)
  t.notOk(isUnsent(back(behind)), 'the hub chose it from a trimmed journal')
  t.notOk(isUnsent(back(whenLeft(back(behind)))), 'and the session left before it came')
  t.notOk(isUnsent(back(unconflated)), 'the hub reads it from the journal again')
  const ended = { ...session, wasConnected: false }
  for (const standing of [waits, whenLeft({ is: 'must', isUnsent: true })]) {
    const after = whenCrashed(standing, latest, ended, () => false)
    t.notOk(isUnsent(back(after)), 'the end of the connection is not stored')
  }
})

t.test('filters removed', async (t) => {
  t.equal(short(whenFiltersChanged({ is: 'must' }, every, none)), 'never: filter removed')
  t.equal(short(whenFiltersChanged({ is: 'must' }, every, late)), 'never: filter removed')
  t.equal(short(whenFiltersChanged({ is: 'must' }, every, meanwhile)), 'may')
  t.equal(short(whenFiltersChanged({ is: 'must' }, every, qos1)), 'must')
  t.same(whenFiltersChanged(sent, every, none), sent, 'what was begun is completed')
  const chosen = whenReturned(waits, latest, { now: 0, events: [latest] }, false)
  const removed = whenFiltersChanged(chosen, latest, none)
  t.equal(short(removed), 'never: filter removed', 'what was chosen at the return and not begun')
  const crash = { filters: none, wasConnected: true, isAfterCrash: false, isRaced: false }
  t.equal(short(whenCrashed(removed, latest, crash, () => false)), 'waits: perhaps', 'until a crash')
})

t.test('crashed', async (t) => {
  const session = { filters: qos1, wasConnected: true, isAfterCrash: false, isRaced: false }
  const after = (standing: Standing, fields: Partial<typeof session> = {}, since = 0) =>
    whenCrashed(standing, latest, { ...session, ...fields }, (at) => at > since)
  t.equal(short(after({ is: 'must' })), 'waits: all')
  t.equal(short(after({ is: 'must' }, { filters: meanwhile })), 'waits: perhaps')
  t.equal(short(after({ is: 'may', isQos0: true }, { filters: meanwhile })), 'waits: perhaps')
  t.equal(short(after({ is: 'may', isQos0: true }, { filters: late })), 'never: QoS 0')
  t.same(after(sent), read)
  t.same(after(sent, { filters: none }), read)
  t.same(after(sent, { filters: none, isRaced: true }), { ...read, isOwed: false })
  t.same(after({ is: 'must', before: { is: 'sent', isOwed: true } }), sent)
  t.equal(short(after({ is: 'never', why: 'superseded' })), 'never: superseded')
  t.equal(short(after({ is: 'never', why: 'superseded' }, { isAfterCrash: true })), 'waits: perhaps')
  t.same(after(acknowledged), { ...acknowledged, isKnown: false }, 'within the last second')
  t.same(after(acknowledged, {}, 100), acknowledged, 'before')
  t.same(after(waits, { wasConnected: true }), waits)
  t.equal(short(after(waits, { wasConnected: false })), 'waits: newest, perhaps all')
  const newer = { ...latest, number: 6, time: 60 }
  const all = whenReturned({ is: 'waits', choice: 'all' }, latest, { now: 0, events: [latest, newer] }, false)
  t.equal(short(all), 'must', 'unconflated')
})

t.test('brought by SUBSCRIBE', async (t) => {
  const brings = (
    standing: Standing,
    event = latest,
    qos: 0 | 1 = 1,
    filter = 'l/+',
    isDueBesides = false,
  ) => {
    const moment = { now: 90, events: [event] }
    return broughtBySubscribe(event, { standing, qos: 1, isDueBesides }, new Map([[filter, qos]]), moment)
  }
  t.equal(brings({ is: 'never', why: 'no filter' }), 'must')
  t.equal(brings(acknowledged), 'must')
  t.equal(brings(acknowledged, latest, 1, 'l/+', true), 'may')
  t.equal(brings(sent), 'never', 'it is in flight')
  t.equal(brings(sent, latest, 0), 'may')
  t.equal(brings(acknowledged, every, 1, '#'), 'never')
  t.equal(brings(acknowledged, latest, 1, 'e/+'), 'never')
  t.equal(brings(acknowledged, { ...latest, expires: 90 }), 'must', 'however old it is')
})

t.test('at the same time as something else', async (t) => {
  t.equal(short(eitherWay({ is: 'must' }, { is: 'must' })), 'must')
  t.equal(short(eitherWay({ is: 'must' }, { is: 'never', why: 'no filter' })), 'may')
  t.equal(short(eitherWay(whenLeft({ is: 'must' }), waits)), 'waits: newest, perhaps all')
  t.equal(short(eitherWay({ is: 'never', why: 'no filter' }, waits)), 'waits: perhaps')
  t.same(eitherWay(sent, waits), sent)
})

t.test('a PUBLISH', async (t) => {
  const packet = { qos: 1, dup: false, retain: false, packetId: 7 } as const
  const known = {
    standing: { is: 'must' } as Standing,
    received: 0,
    receivedHere: false,
    packetId: undefined,
    packetIdElsewhere: undefined,
    isBroughtBySubscribe: false,
    isDueBesides: false,
    isNew: true,
    isSecondAtQos2: false,
  }
  const rows: [string[], object, object][] = [
    [[], {}, {}],
    [['DUP, and it is new'], { dup: true }, {}],
    [[], { dup: true }, { isNew: false }],
    [['again without DUP'], {}, { received: 1 }],
    [[], { dup: true }, { received: 1, packetId: 7 }],
    [['identifier 7, in place of 8'], { dup: true }, { received: 1, packetId: 8 }],
    [['identifier 7, another session got it under 8'], {}, { packetIdElsewhere: 8 }],
    [['must not come: superseded'], {}, { standing: { is: 'never', why: 'superseded' } }],
    [['twice in one connection'], {}, { received: 1, receivedHere: true, standing: sent }],
    [['again after its acknowledgement'], { dup: true }, { received: 1, standing: acknowledged }],
    [['QoS 0 though more was granted'], { qos: 0 }, {}],
    [['more QoS than was granted'], {}, { standing: { is: 'may', isQos0: true } }],
    [['QoS 2 of 1'], { qos: 2 }, {}],
    [['QoS 2 twice', 'QoS 2 of 1'], { qos: 2 }, { isSecondAtQos2: true }],
    [['retain, and no SUBSCRIBE'], { retain: true }, {}],
    [[], { retain: true }, { isBroughtBySubscribe: true, received: 1, standing: acknowledged }],
    [[], {}, { isDueBesides: true, received: 1, receivedHere: true, standing: acknowledged }],
  ]
  for (const [wanted, sentAs, knownAs] of rows) {
    const found = wrongWith({ ...packet, ...sentAs }, every, { ...known, ...knownAs })
    t.same(found.sort(), wanted.sort(), JSON.stringify([sentAs, knownAs]))
  }
})

t.test('the order', async (t) => {
  const arrival = (number: number, isOwed = false, qos = 1) => ({ number, isOwed, qos })
  const marks = { leftAt: 10, cameAt: 20 }
  t.notOk(isOutOfOrder(arrival(6), [arrival(5)], marks))
  t.ok(isOutOfOrder(arrival(5), [arrival(6)], marks))
  t.ok(isOutOfOrder(arrival(5), [arrival(6, false, 2)], marks))
  t.notOk(isOutOfOrder(arrival(25), [arrival(26, false, 2)], marks), 'live, at another QoS')
  t.notOk(isOutOfOrder(arrival(12), [arrival(5, true)], marks))
  t.ok(isOutOfOrder(arrival(5, true), [arrival(12)], marks), 'what is owed comes first')
})
