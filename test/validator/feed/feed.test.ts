import { readFileSync } from 'node:fs'
import t from 'tap'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import { openFeed, parseFeed } from '../../../validator/feed/feed.ts'
import { pack } from '../../../validator/feed/packed.ts'
import { feedOf, item, livestreamOf, textOf } from '../feeds.ts'

t.test('livestreams are found by id and external id, and their owners', async (t) => {
  const shared = { externalId: 'crid://example/shared' }
  const feed = feedOf(item(1), item(2), item(3, 2, shared), item(4, 3, shared))
  t.equal(feed.size, 4)
  t.strictSame(feed.byId.get('urn:org:permanent-livestream:1'), livestreamOf(1))
  t.equal(feed.byId.get('crid://example/1'), undefined)
  t.equal(feed.byId.get('constructor'), undefined)
  t.strictSame(feed.byExternalId.get('crid://example/2'), [livestreamOf(2)])
  t.strictSame(
    feed.byExternalId.get('crid://example/shared')?.map(({ id }) => id),
    ['urn:org:permanent-livestream:3', 'urn:org:permanent-livestream:4'],
  )
  t.equal(feed.byExternalId.get('crid://example/none'), undefined)
  t.equal(feed.isPublisherOf('urn:org:publisher:1', 'urn:org:institution:1'), true)
  t.equal(feed.isPublisherOf('urn:org:publisher:1', 'urn:org:institution:2'), false)
  t.equal(feed.isPublisherOf('urn:org:publisher:none', 'urn:org:institution:1'), false)
  t.strictSame(
    feed.institutions(),
    ['1', '2', '3'].map((of) => `urn:org:institution:${of}`),
  )
  t.equal(feed.hasInstitution('urn:org:institution:3'), true)
  t.equal(feed.hasInstitution('urn:org:institution:4'), false)
})

t.test('unknown fields are ignored, and what is only for people may be missing', async (t) => {
  const { title, type, ...bare } = item(1)
  const publisher = {
    id: bare.publisher.id,
    institution: { id: bare.publisher.institution.id },
    region: 'Küste',
  }
  const feed = feedOf({ ...bare, publisher, homepage: 'https://example/', more: { deep: [1] } })
  t.strictSame(feed.byId.get(bare.id), {
    ...livestreamOf(1),
    type: '',
    title: '',
    publisher: { id: bare.publisher.id, externalId: '', title: '' },
    institution: { id: bare.publisher.institution.id, title: '', acronym: '' },
  })
})

t.test('a feed with anything wrong is refused whole, and the problem says where', async (t) => {
  const { publisher } = item(2)
  const rows: [text: string, problem: string | RegExp][] = [
    ['', /^not JSON: /],
    ['{"items":[', /^not JSON: /],
    ['<html></html>', /^not JSON: /],
    ['null', 'items: expected an array of livestreams'],
    ['[]', 'items: expected an array of livestreams'],
    ['{}', 'items: expected an array of livestreams'],
    [textOf({ 0: item(1) }), 'items: expected an array of livestreams'],
    [textOf([]), 'items: expected at least one livestream'],
    [textOf([item(1), null]), 'items.1.id: expected a livestream URN of at most 200 characters'],
    [textOf([item(1), []]), 'items.1.id: expected a livestream URN of at most 200 characters'],
    [textOf([item(1, 1, { id: '1' })]), 'items.0.id: expected a livestream URN of at most 200 characters'],
    [
      textOf([item(1, 1, { id: 'urn:org:publisher:1' })]),
      'items.0.id: expected a livestream URN of at most 200 characters',
    ],
    [
      textOf([item(1, 1, { id: 'urn:org:permanent-livestream:a/b' })]),
      'items.0.id: expected a livestream URN of at most 200 characters',
    ],
    [textOf([{ ...item(1), externalId: 7 }]), 'items.0.externalId: expected a string'],
    [textOf([item(1, 1, { externalId: '' })]), 'items.0.externalId: expected a string'],
    [
      textOf([{ ...item(1), publisher: undefined }]),
      'items.0.publisher.id: expected a publisher URN of at most 200 characters',
    ],
    [
      textOf([item(1), { ...item(2), publisher: { ...publisher, institution: 'I1' } }]),
      'items.1.publisher.institution.id: expected an institution URN of at most 200 characters',
    ],
    [textOf([item(1), item(2), item(1)]), 'items.2.id: urn:org:permanent-livestream:1 is listed twice'],
  ]
  for (const [text, problem] of rows) t.match(parseFeed(text), { problem }, text.slice(0, 60))
})

t.test('the sample feed is a good one', async (t) => {
  const parsed = parseFeed(readFileSync(sampleFeedPath, 'utf8'))
  t.ok('feed' in parsed && parsed.feed.size >= 50)
})

t.test('a replaced feed answers as the one in use, and gives its memory for a later feed', async (t) => {
  const [first, second] = [pack([livestreamOf(1), livestreamOf(2)]), pack([livestreamOf(3)])]
  const [former, current] = [openFeed(first), openFeed(second)]
  t.equal(former.size, 2)
  t.equal(former.replaceBy(current), first.memory)
  t.equal(former.size, 1)
  t.equal(former.byId.get(livestreamOf(1).id), undefined)
  t.strictSame(former.sample, livestreamOf(3))

  const third = pack([livestreamOf(4)], first.memory)
  t.equal(third.memory, first.memory)
  const last = openFeed(third)
  t.equal(current.replaceBy(last), second.memory)
  t.strictSame(former.byId.get(livestreamOf(4).id), livestreamOf(4), 'also after the next one')
})

t.test('who is reading all livestreams of a feed reads those to the end', async (t) => {
  const livestreams = Array.from({ length: 1_200 }, (_, index) => livestreamOf(index + 1))
  const [former, current] = [openFeed(pack(livestreams)), openFeed(pack([livestreamOf(9_999)]))]
  const ids: string[] = []
  for await (const { id } of former.all()) {
    if (ids.length === 700) t.equal(former.replaceBy(current), undefined)
    ids.push(id)
  }
  t.strictSame(
    ids,
    livestreams.map(({ id }) => id),
  )
  t.equal(former.byId.get(livestreamOf(1).id)?.title, 'Station 1')
})

t.test('livestreams that need more memory than there is get more', async (t) => {
  const long = { ...livestreamOf(2), title: 'ä'.repeat(100_000) }
  const feed = openFeed(pack([livestreamOf(1), long, livestreamOf(3)], new SharedArrayBuffer(8)))
  t.strictSame(feed.byId.get(long.id), long)
  t.strictSame(feed.byExternalId.get(livestreamOf(3).externalId), [livestreamOf(3)])
})
