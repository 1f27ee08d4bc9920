import fc from 'fast-check'
import t from 'tap'
import {
  checkTopicFilter,
  checkTopicName,
  feedbackTopic,
  filterContains,
  filterMatches,
  inboxTopic,
  parseInbox,
  radioTopic,
} from '../../event/topic.ts'
import { between, words } from '../words.ts'

const institution = 'urn:org:institution:75b657fb49856f7b'
const livestream = 'urn:org:permanent-livestream:4638c4eac849c618'

t.test('the topic tree is that of service.md §4.2', async (t) => {
  t.equal(inboxTopic(institution), `inbox/${institution}`)
  t.equal(inboxTopic(institution, 'track'), `inbox/${institution}/track`)
  t.equal(feedbackTopic(institution), `feedback/${institution}`)
  t.equal(radioTopic(livestream, { suffix: 'track/playing' }), `radio/${livestream}/track/playing`)
})

t.test('an inbox topic names an institution and perhaps a class', async (t) => {
  t.strictSame(parseInbox(`inbox/${institution}`), { institutionId: institution })
  t.strictSame(parseInbox(`inbox/${institution}/control`), { institutionId: institution, cls: 'control' })
  t.strictSame(parseInbox(`inbox/${institution}/check`), { institutionId: institution, dryRun: true })
  const others = [
    '',
    ...words(`
      inbox inbox/ /inbox/${institution} inbox/${institution}/ inbox/${institution}/radio
      inbox/${institution}/track/playing inbox/${institution}/track/ inbox/${institution}/check/track
      inbox/${institution}/constructor inbox/urn:org:publisher:1 inbox/+ inbox/# Inbox/${institution}
      feedback/${institution}
    `),
  ]
  for (const topic of others) t.equal(parseInbox(topic), undefined, topic)
})

t.test('a topic name that can be a topic here', async (t) => {
  const names = [
    'a',
    inboxTopic(institution, 'data'),
    '$SYS/uptime',
    'a/b:c-d_e',
    'ä/日本',
    Array(100).fill('a').join('/'),
    'a'.repeat(65_535),
  ]
  for (const name of names) t.equal(checkTopicName(name), undefined, name.slice(0, 40))
})

t.test('a topic name that can never be a topic here', async (t) => {
  const names: [name: string, reason: RegExp][] = [
    ['', /empty/],
    ['a.b', /dot/],
    ['radio/crid://x.y', /dot/],
    ['a b', /white space/],
    ['a/b ', /white space/],
    ['a\tb', /white space/],
    ['a\r', /white space/],
    ['a\n', /white space/],
    ['+', /wildcard/],
    ['a/#', /wildcard/],
    ['a+b', /wildcard/],
    ['/', /level is empty/],
    ['/a', /level is empty/],
    ['a/', /level is empty/],
    ['a//b', /level is empty/],
    [Array(101).fill('a').join('/'), /more than 100 levels/],
    ['/'.repeat(65_535), /more than 100 levels/],
    ['a'.repeat(65_536), /longer than 65535 bytes/],
    ['ä'.repeat(32_768), /longer than 65535 bytes/],
  ]
  for (const [name, reason] of names) t.match(checkTopicName(name), reason, JSON.stringify(name.slice(0, 40)))
})

t.test('white space and control characters of every kind are refused in topic names', async (t) => {
  const points = [
    0x00, 0x01, 0x09, 0x0b, 0x1f, 0x20, 0x7f, 0x80, 0x85, 0x9f, 0xa0, 0xad, 0x1680, 0x180e, 0x2000, 0x200b,
    0x200e, 0x2028, 0x2029, 0x202e, 0x202f, 0x205f, 0x2060, 0x3000, 0xd800, 0xdfff, 0xfeff, 0xe0001,
  ]
  for (const point of points) {
    t.match(checkTopicName(`a${String.fromCodePoint(point)}b`), /white space/, `U+${point.toString(16)}`)
  }
})

t.test('a well-formed filter by MQTT 3.1.1 §4.7, dots and spaces included', async (t) => {
  const filters = [
    '$SYS/#',
    '$share/g/a',
    ...between(`
      # | + | +/# | / | // | a | a/+ | a/# | +/+/b | /+ | a.b/c d
    `),
  ]
  for (const filter of filters) t.equal(checkTopicFilter(filter), undefined, filter)
})

t.test('a malformed filter by MQTT 3.1.1 §4.7', async (t) => {
  const filters: [filter: string, reason: RegExp][] = [
    ['', /empty/],
    ['#/a', /# must be the last/],
    ['a/#/', /# must be the last/],
    ['##', /# must fill/],
    ['a#', /# must fill/],
    ['a/b#', /# must fill/],
    ['+#', /# must fill/],
    ['a+', /\+ must fill/],
    ['+a/b', /\+ must fill/],
    ['++', /\+ must fill/],
    ['a\0', /null/],
    [`${'a/'.repeat(100)}#`, /more than 100 levels/],
    ['a'.repeat(65_536), /longer/],
  ]
  for (const [filter, reason] of filters)
    t.match(checkTopicFilter(filter), reason, JSON.stringify(filter.slice(0, 40)))
})

t.test('a filter matches topics by MQTT 3.1.1 §4.7', async (t) => {
  const cases: [filter: string, matched: string[], missed: string[]][] = [
    ['a/b', ['a/b'], ['a', 'a/b/c', 'a/B', '/a/b', 'a/b/']],
    [
      'sport/tennis/player1/#',
      ['sport/tennis/player1', 'sport/tennis/player1/ranking', 'sport/tennis/player1/a/b'],
      ['sport/tennis'],
    ],
    ['a/#', ['a', 'a/', 'a/b', 'a/b/c'], ['ab', 'b', '/a']],
    ['#', ['a', '/', 'a/b', '/a'], ['$SYS', '$SYS/a', '$']],
    ['+', ['a'], ['/a', 'a/', 'a/b', '$SYS']],
    ['/+', ['/a', '/'], ['a', '/a/b']],
    ['+/+', ['/a', '/', 'a/b'], ['a', '$SYS/a']],
    ['sport/+', ['sport/', 'sport/x'], ['sport', 'sport/x/y']],
    ['+/#', ['a', 'a/b', '/'], ['$SYS', '$SYS/a']],
    ['+/b', ['a/b', '/b'], ['$SYS/b']],
    ['$SYS/#', ['$SYS', '$SYS/a'], ['SYS', '$SYSTEM']],
    ['$SYS/+', ['$SYS/a'], ['$SYS']],
    ['a/$b', ['a/$b'], []],
    ['a/+/c', ['a/$b/c', 'a//c'], ['a/c', 'a/b/b/c']],
    ['radio/+/track/playing', [`radio/${livestream}/track/playing`], [`radio/${livestream}/track/next`]],
  ]
  for (const [filter, matched, missed] of cases) {
    for (const topic of matched) t.equal(filterMatches(filter, topic), true, `${filter} matches ${topic}`)
    for (const topic of missed)
      t.equal(filterMatches(filter, topic), false, `${filter} does not match ${topic}`)
  }
})

t.test('a filter contains another', async (t) => {
  const cases: [permitted: string, contained: string[], others: string[]][] = [
    [
      'radio/#',
      ['radio/#', 'radio', 'radio/+', 'radio/+/#', 'radio/a/b'],
      ['#', '+', '+/a', 'radios', 'radio2/#'],
    ],
    [
      'radio/+/control',
      ['radio/a/control', 'radio/+/control'],
      ['radio/#', 'radio/+/#', 'radio/+/+', 'radio/a/control/#'],
    ],
    ['a/#', ['a'], ['a#']],
    ['a/+', ['a/b', 'a/+', 'a/'], ['a', 'a/#', 'a/+/#']],
    ['a/+/#', ['a/+', 'a/b/#'], ['a/#', 'a']],
    ['+/#', ['#', '+', '+/+', 'a/#'], ['$SYS', '$SYS/#']],
    ['#', ['+/#', '#', '/'], ['$SYS/#', '$SYS', '$share/g/a']],
    ['$SYS/#', ['$SYS', '$SYS/a'], ['#', '+/a']],
    ['a', ['a'], ['b', '+', '#', 'a/#', 'a/']],
    ['a/b/c', [], ['a/b', 'a/b/c/#', 'a/b/+']],
    ['', [], ['', 'a']],
    ['#/a', [], ['#/a', 'a']],
  ]
  for (const [permitted, contained, others] of cases) {
    for (const filter of contained)
      t.equal(filterContains(permitted, filter), true, `${permitted} contains ${filter}`)
    for (const filter of others)
      t.equal(filterContains(permitted, filter), false, `${permitted} does not contain ${filter}`)
  }
})

t.test('containment is exact: it agrees with trying every topic', async () => {
  const level = fc.constantFrom('a', 'b', '', '$s', '+', '+')
  const filter = fc
    .tuple(fc.array(level, { minLength: 0, maxLength: 4 }), fc.boolean())
    .map(([levels, tail]) => (tail ? [...levels, '#'] : levels).join('/'))
    .filter((text) => checkTopicFilter(text) === undefined)
  // These topics show every difference between two filters: no filter has the word `z`, and behind the four levels of a
  // filter only `#` matches anything, however many levels there are.
  const topics = topicsOf(['a', 'b', '', '$s', 'z'], 5)
  fc.assert(
    fc.property(filter, filter, (permitted, requested) => {
      const expected = topics.every(
        (topic) => !filterMatches(requested, topic) || filterMatches(permitted, topic),
      )
      return filterContains(permitted, requested) === expected
    }),
    {
      numRuns: 2000,
      examples: [
        ['+/#', '#'],
        ['/+/#', '/#'],
        ['#', '+/#'],
        ['a/#', 'a'],
        ['+', '$s'],
        ['a/+/#', 'a/#'],
      ],
    },
  )
})

/** All topics of up to `depth` levels, made of these words. */
function topicsOf(words: readonly string[], depth: number): string[] {
  const all: string[] = []
  let longest: string[][] = [[]]
  for (let levels = 1; levels <= depth; levels++) {
    longest = longest.flatMap((head) => words.map((word) => [...head, word]))
    all.push(...longest.map((path) => path.join('/')))
  }
  return all.filter((topic) => topic !== '')
}
