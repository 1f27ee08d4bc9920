import t from 'tap'
import {
  deriveLivestreamId,
  derivePublisherId,
  isInstitutionUrn,
  isLivestreamUrn,
  isPublisherUrn,
  isUrn,
} from '../../event/urn.ts'

t.test('a URN is urn:org:<kind>:<id> in lower-case letters, digits and dashes', async (t) => {
  for (const text of [
    'urn:org:publisher:1',
    'urn:org:a-b:c-d',
    'urn:org:permanent-livestream:234690e18c2c7863',
  ]) {
    t.equal(isUrn(text), true, text)
  }
  const wrong = [
    '',
    'urn:org:publisher:',
    'urn:org::1',
    'urn:org:publisher:A',
    'urn:org:publisher:a:b',
    'urn:org:publisher:a/b',
    'urn:org:publisher:a.b',
    'urn:org:publisher:+',
    'urn:org:publisher:#',
    'urn:org:publisher:a\n',
    ' urn:org:publisher:a',
    'URN:org:publisher:a',
    'urn:other:publisher:a',
    'urn:org:publisher:ä',
    '282310',
  ]
  for (const text of wrong) t.equal(isUrn(text), false, JSON.stringify(text))
  const longest = 'urn:org:publisher:'.padEnd(200, '1')
  t.equal(isUrn(longest), true, '200 characters')
  t.equal(isUrn(`${longest}1`), false, '201 characters')
})

t.test('a URN has one kind', async (t) => {
  t.equal(isUrn('urn:org:show:1', 'show'), true)
  t.equal(isUrn('urn:org:shows:1', 'show'), false)
  t.equal(isUrn('urn:org:show:A', 'show'), false)
  t.equal(isInstitutionUrn('urn:org:institution:1'), true)
  t.equal(isInstitutionUrn('urn:org:publisher:1'), false)
  t.equal(isPublisherUrn('urn:org:publisher:1'), true)
  t.equal(isPublisherUrn('urn:org:institution:1'), false)
  for (const kind of ['permanent-livestream', 'livestream', 'event-livestream']) {
    t.equal(isLivestreamUrn(`urn:org:${kind}:1`), true, kind)
  }
  for (const kind of ['event', 'publisher', 'livestream-x', 'constructor']) {
    t.equal(isLivestreamUrn(`urn:org:${kind}:1`), false, kind)
  }
})

t.test('ids derived from external ids (design.md §5)', async (t) => {
  t.equal(derivePublisherId('282310'), 'urn:org:publisher:75dbb3dace15f610')
  const externalId = 'crid://swr.de/282310/demo7'
  t.equal(
    deriveLivestreamId('PermanentLivestream', externalId),
    'urn:org:permanent-livestream:234690e18c2c7863',
  )
  t.equal(deriveLivestreamId('Livestream', externalId), 'urn:org:livestream:234690e18c2c7863')
  t.equal(deriveLivestreamId('Event', externalId), 'urn:org:event-livestream:234690e18c2c7863')
})
