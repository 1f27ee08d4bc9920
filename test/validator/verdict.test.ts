import t from 'tap'
import { deriveLivestreamId, derivePublisherId } from '../../event/derived-id.ts'
import type { Service } from '../../event/schema.ts'
import type { LivestreamIndex } from '../../validator/feed/feed.ts'
import { checkNames, judge, judgeService } from '../../validator/verdict.ts'
import { feedOf, item, livestreamOf } from './feeds.ts'

const institutionId = 'urn:org:institution:1'
const numbered = derivePublisherId('282310')
const [one, foreign] = [livestreamOf(1), livestreamOf(3, 2)]
const [dropped, foreignDropped] = [livestreamOf(7), livestreamOf(8, 2)]
const ofNumbered = item(5, 1, { publisher: { id: numbered, externalId: '282310', title: 'Numbered' } })
const derivedName = 'crid://example/derived'
const derived = item(10, 2, {
  id: deriveLivestreamId('Livestream', derivedName),
  externalId: 'crid://example/renamed',
})
const formerName = 'crid://example/derived, and gone'
const formerDerived = item(19, 2, {
  id: deriveLivestreamId('Livestream', formerName),
  externalId: 'crid://example/renamed, and gone',
})
const shared = { id: 'urn:org:publisher:shared', externalId: 'shared', title: 'Shared' }
const feed = feedOf(
  ...[item(1), item(2), item(3, 2), ofNumbered, derived],
  item(12, 1, { publisher: shared }),
  item(13, 2, { publisher: shared, externalId: 'crid://example/shared' }),
  ...[4, 14].map((id) => item(id, 1, { publisher: one.publisher, externalId: 'crid://example/twin' })),
  item(15, 1, { publisher: one.publisher, externalId: 'crid://example/typed' }),
  item(16, 1, { publisher: one.publisher, externalId: 'crid://example/typed', type: 'Event' }),
)
const gone = { id: 'urn:org:publisher:gone', externalId: 'gone', title: 'Gone' }
const former: LivestreamIndex = feedOf(
  ...[item(7), item(8, 2), item(11, 1, { publisher: gone }), formerDerived],
  ...[17, 18].map((id) => item(id, 1, { publisher: gone, externalId: 'crid://example/dropped twin' })),
  // These had other external ids than in today's feed. Livestream 3 also had another institution.
  item(2, 1, { externalId: 'crid://example/before' }),
  item(3, 1, { externalId: 'crid://example/before it moved' }),
)

const unknown = 'crid://example/new'
const ours = 'crid://example/ours'
const theirs = 'crid://example/theirs'
const nobodys = 'crid://example/nobodys'
const owners = new Map([
  [ours, institutionId],
  [theirs, foreign.institution.id],
  [nobodys, 'unknown'],
])
const by = { feed, former, ownerOf: (_id: string, externalId: string) => owners.get(externalId) }

const service = (fields: Partial<Service> = {}): Service => ({
  type: 'PermanentLivestream',
  externalId: one.externalId,
  publisherId: one.publisher.id,
  ...fields,
})
const blocked = (errorCode: string, at = '') => ({ blocked: { path: `.services.0${at}`, errorCode } })

t.test('the verdict on a service (design.md §9)', async (t) => {
  const notOwn = blocked('service.institution.mismatch')
  const notThePublisher = blocked('service.publisher.mismatch', '.publisherId')
  const ambiguous = (field: string) => blocked('service.ambiguous', `.${field}`)
  const livestream = (number: number) => ({ livestreamId: `urn:org:permanent-livestream:${number}` })
  const table: [why: string, fields: Partial<Service>, verdict: object][] = [
    ['listed under the publisher', {}, { livestreamId: one.id, publisherId: one.publisher.id }],
    ['with its id', { id: one.id }, { livestreamId: one.id }],
    [
      'listed under a publisher that two institutions have, for the other one',
      { externalId: 'crid://example/shared', publisherId: shared.id },
      notOwn,
    ],
    [
      'one of two with the same external id, by its id',
      { externalId: 'crid://example/twin', id: livestream(14).livestreamId },
      livestream(14),
    ],
    [
      'one of two with the same external id, by nothing else',
      { externalId: 'crid://example/twin' },
      ambiguous('externalId'),
    ],
    [
      'one of two with the same external id, by the id of a third',
      { externalId: 'crid://example/twin', id: one.id },
      ambiguous('id'),
    ],
    [
      'one of two with the same external id, alone of its type',
      { externalId: 'crid://example/typed', type: 'Event' },
      livestream(16),
    ],
    [
      'one of two with the same external id, of the type of neither',
      { externalId: 'crid://example/typed', type: 'Livestream' },
      ambiguous('externalId'),
    ],
    [
      'one of two that dropped out with the same external id, by its id',
      { externalId: 'crid://example/dropped twin', id: livestream(18).livestreamId },
      livestream(18),
    ],
    [
      'one of two that dropped out with the same external id, by nothing else',
      { externalId: 'crid://example/dropped twin' },
      ambiguous('externalId'),
    ],
    [
      'external publisher id',
      { externalId: 'crid://example/5', publisherId: '282310' },
      { livestreamId: 'urn:org:permanent-livestream:5', publisherId: numbered },
    ],
    [
      'livestream unknown to the feed',
      { externalId: unknown },
      { livestreamId: deriveLivestreamId('PermanentLivestream', unknown) },
    ],
    [
      'unknown to the feed, of another type',
      { externalId: unknown, type: 'Event' },
      { livestreamId: deriveLivestreamId('Event', unknown) },
    ],
    ['unknown publisher', { publisherId: 'urn:org:publisher:9' }, notThePublisher],
    ['unknown external publisher', { publisherId: 'nobody' }, notThePublisher],
    ['foreign publisher', { publisherId: foreign.publisher.id }, notThePublisher],
    ["a foreign livestream under one's own publisher", { externalId: foreign.externalId }, notOwn],
    [
      'a foreign livestream under its publisher',
      { externalId: foreign.externalId, publisherId: foreign.publisher.id },
      notOwn,
    ],
    [
      "one's own livestream under another of one's own publishers",
      { publisherId: '282310' },
      notThePublisher,
    ],
    [
      'unknown to the feed, of a foreign publisher',
      { externalId: unknown, publisherId: foreign.publisher.id },
      notThePublisher,
    ],
    [
      'a claimed institution',
      { institutionId: foreign.institution.id },
      blocked('service.institution.claim', '.institutionId'),
    ],
    ['an id of another livestream', { id: foreign.id }, ambiguous('id')],
    [
      "a foreign livestream's id with an unknown external id",
      { id: foreign.id, externalId: unknown },
      ambiguous('id'),
    ],
    [
      'whose topic we made',
      { externalId: ours },
      { livestreamId: deriveLivestreamId('PermanentLivestream', ours) },
    ],
    ['whose topic others made', { externalId: theirs }, notOwn],
    ['whose topic says nothing', { externalId: nobodys }, blocked('service.unknown', '.externalId')],
    ['dropped, ours', { externalId: dropped.externalId }, { livestreamId: dropped.id, isUnlisted: false }],
    [
      'dropped, ours, with its id',
      { ...dropped, type: 'Event', publisherId: '282310' },
      { livestreamId: dropped.id },
    ],
    [
      'dropped with its publisher',
      { externalId: 'crid://example/11', publisherId: 'urn:org:publisher:gone' },
      livestream(11),
    ],
    [
      'unknown, of a publisher that dropped out',
      { externalId: unknown, publisherId: 'urn:org:publisher:gone' },
      notThePublisher,
    ],
    [
      'dropped, under an unknown publisher',
      { externalId: dropped.externalId, publisherId: 'x' },
      notThePublisher,
    ],
    ['dropped, of others', { externalId: foreignDropped.externalId }, notOwn],
    [
      'dropped, of others, under their publisher',
      { externalId: foreignDropped.externalId, publisherId: foreign.publisher.id },
      notOwn,
    ],
    ['dropped, of others, in other case', { externalId: 'crid://EXAMPLE/8' }, notOwn],
    ['listed, of others, in other case', { externalId: 'crid://EXAMPLE/3' }, notOwn],
    [
      'ours, in other case',
      { externalId: 'crid://EXAMPLE/1' },
      { livestreamId: deriveLivestreamId('PermanentLivestream', 'crid://EXAMPLE/1') },
    ],
    [
      'by a name from before',
      { externalId: 'crid://example/before' },
      { livestreamId: 'urn:org:permanent-livestream:2', isUnlisted: false },
    ],
    ['by a name from before it moved to others', { externalId: 'crid://example/before it moved' }, notOwn],
    [
      'by what reads like a name from before it moved to others',
      { externalId: 'crid://EXAMPLE/before it moved' },
      notOwn,
    ],
    [
      'what would get the id of another',
      { externalId: derivedName, type: 'Livestream' },
      ambiguous('externalId'),
    ],
    ['the same as another type', { externalId: derivedName, type: 'Event' }, ambiguous('externalId')],
    ['the same of one that has dropped out', { externalId: formerName }, ambiguous('externalId')],
  ]
  for (const [why, fields, verdict] of table) {
    t.match(judgeService(service(fields), '.services.0', institutionId, by), verdict, why)
  }
})

t.test('of several livestreams with one external id the hub picks none', async (t) => {
  const verdict = judgeService(
    service({ externalId: 'crid://example/twin' }),
    '.services.0',
    institutionId,
    by,
  )
  t.match(verdict, {
    blocked: { message: /: crid:\/\/example\/twin names 2 livestreams, expected an id as well$/ },
  })
})

t.test('the message says which publisher is expected', async (t) => {
  for (const [given, message] of [
    [service({ publisherId: '282310' }), /: "282310", expected urn:org:publisher:1$/],
    [service({ externalId: dropped.externalId, publisherId: 'x' }), /: "x", expected urn:org:publisher:1$/],
    [
      service({ externalId: unknown, publisherId: 'x' }),
      /: "x" is unknown, or not one of urn:org:institution:1$/,
    ],
  ] as const) {
    const verdict = judgeService(given, '.services.0', institutionId, by)
    t.match(verdict, { blocked: { message } })
    t.notMatch(JSON.stringify(verdict), /feed lists/, 'the feed lists not all of these livestreams')
  }
})

t.test('nobody is told whose a livestream is', async (t) => {
  for (const externalId of [foreign.externalId, foreignDropped.externalId, theirs]) {
    const verdict = judgeService(service({ externalId }), '.services.0', institutionId, by)
    t.ok('blocked' in verdict)
    t.notMatch(JSON.stringify(verdict), /institution:2|publisher:2/)
  }
})

t.test('an old name of a livestream that has dropped out leads to its last owner', async (t) => {
  const renamed = 'crid://example/its first name'
  const last = feedOf(item(9, 2, { externalId: 'crid://example/its last name' }))
  const dropped: LivestreamIndex = { ...feedOf(item(9, 1, { externalId: renamed })), byId: last.byId }
  const verdict = judgeService(service({ externalId: renamed }), '.services.0', institutionId, {
    ...by,
    former: dropped,
  })
  t.match(verdict, blocked('service.institution.mismatch'), 'not to the owner of that day')
})

t.test('only livestreams that no feed named need a CRID', async (t) => {
  const odd = {
    feed: feedOf(item(1, 1, { externalId: 'odd' })),
    former: feedOf(item(2, 1, { externalId: 'once' })),
  }
  const names = ['odd', 'once', 'crid://a/b', 'other', `crid://a/${'b'.repeat(500)}`]
  t.match(
    checkNames(
      names.map((externalId) => service({ externalId })),
      { ...by, ...odd },
    ),
    [3, 4].map((index) => ({
      path: `.services.${index}.externalId`,
      errorCode: 'pattern.openapi.validation',
    })),
  )
})

t.test('the last livestream outside of the feed that an institution may have counts once', async (t) => {
  const last = service({ externalId: unknown })
  const another = service({ externalId: 'crid://example/another' })
  const topics = { stored: new Map(), has: () => false, countOf: () => 1_999 }
  const { verdicts } = judge([last, last, another, last], institutionId, by, topics)
  const accepted = { livestreamId: deriveLivestreamId(last.type, unknown) }
  const refused = { blocked: { path: '.services.2.externalId', errorCode: 'service.unknown' } }
  t.match(verdicts, [accepted, accepted, refused, accepted])
})
