import { readFileSync } from 'node:fs'
import t from 'tap'
import { sampleFeedPath } from '../../config/sample-feed.ts'
import { crc64, deriveLivestreamId, derivePublisherId } from '../../event/derived-id.ts'
import type { ServiceType } from '../../event/format.ts'

interface Item {
  id: string
  type: ServiceType
  externalId: string
  title: string
  publisher: {
    id: string
    externalId: string
    title: string
    institution: { id: string; title: string; acronym: string }
  }
}

const { items }: { items: Item[] } = JSON.parse(readFileSync(sampleFeedPath, 'utf8'))

t.test('the sample feed has about 60 livestreams of 9 institutions, each once', async (t) => {
  t.equal(items.length, 60)
  t.equal(new Set(items.map((item) => item.id)).size, 60)
  t.equal(new Set(items.map((item) => item.title)).size, 60)
  t.equal(new Set(items.map((item) => item.publisher.institution.id)).size, 9)
})

t.test('all ids of the sample feed are derived from external ids', async (t) => {
  for (const { id, type, externalId, publisher } of items) {
    t.equal(id, deriveLivestreamId(type, externalId), externalId)
    t.equal(publisher.id, derivePublisherId(publisher.externalId))
    t.equal(publisher.institution.id, `urn:org:institution:${crc64(publisher.institution.acronym)}`)
  }
})

t.test('a publisher belongs to one institution, some institutions have several', async (t) => {
  const institutions = new Map<string, Set<string>>()
  const publishers = new Map<string, Set<string>>()
  for (const { publisher } of items) {
    institutions.set(
      publisher.id,
      (institutions.get(publisher.id) ?? new Set()).add(publisher.institution.id),
    )
    publishers.set(
      publisher.institution.id,
      (publishers.get(publisher.institution.id) ?? new Set()).add(publisher.id),
    )
  }
  t.ok([...institutions.values()].every((ids) => ids.size === 1))
  t.ok([...publishers.values()].some((ids) => ids.size > 1))
})

t.test('all service types occur', async (t) => {
  t.strictSame([...new Set(items.map((item) => item.type))].toSorted(), [
    'Event',
    'Livestream',
    'PermanentLivestream',
  ])
})
