import t from 'tap'
import type { Service } from '../../event/schema.ts'
import { checkOwnership } from '../../validator/ownership.ts'
import { feedOf, item, livestreamOf } from './feeds.ts'

const A = 'urn:org:institution:1'
const B = 'urn:org:institution:2'
const id = (n: number) => `urn:org:permanent-livestream:${n}`
const crid = (n: number | string) => `crid://example/${n}`

/*
 * Livestreams 1 and 2 belong to A, 3 to B. 4 and 5 of A share an external id, as do 6 of A and 7 of B.
 * 8 belongs to A under a second publisher.
 */
const feed = feedOf(
  item(1),
  item(2),
  item(3, 2),
  item(4, 1, { externalId: crid('twins') }),
  item(5, 1, { externalId: crid('twins') }),
  item(6, 1, { externalId: crid('shared') }),
  item(7, 2, { externalId: crid('shared') }),
  item(8, 1, { publisher: { id: 'urn:org:publisher:8', externalId: 'p8', title: 'Publisher 8' } }),
)

function service(fields: Partial<Service> = {}): Service {
  const publisherId = 'urn:org:publisher:1'
  return { type: 'PermanentLivestream', externalId: crid(1), publisherId, institutionId: A, ...fields }
}

const { institutionId: _claim, ...unclaimed } = service()

const accepted: [name: string, services: Service[], livestreams: number[]][] = [
  ['by external id', [service()], [1]],
  ['by id and external id', [service({ id: id(1) })], [1]],
  ['without an institution, over HTTPS', [unclaimed], [1]],
  ['an external id of several, with an id', [service({ id: id(5), externalId: crid('twins') })], [5]],
  [
    'an external id that others have too, with an id',
    [service({ id: id(6), externalId: crid('shared') })],
    [6],
  ],
  [
    'another publisher of the institution',
    [service({ externalId: crid(8), publisherId: 'urn:org:publisher:8' })],
    [8],
  ],
  ['several', [service({ externalId: crid(2) }), service()], [2, 1]],
  ['the same twice', [service(), service({ id: id(1) })], [1, 1]],
  ['whatever type it claims', [service({ type: 'Event' })], [1]],
]

t.test('services of the institution resolve to their livestreams, in their order', async (t) => {
  for (const [name, services, livestreams] of accepted) {
    const resolved = checkOwnership(services, A, feed)
    t.ok('livestreams' in resolved, name)
    const ids = 'livestreams' in resolved ? resolved.livestreams.map((livestream) => livestream.id) : []
    t.strictSame(ids, livestreams.map(id), name)
  }
  t.strictSame(checkOwnership([service()], A, feed), { livestreams: [livestreamOf(1)] })
})

const refused: [name: string, services: Service[], errors: string[]][] = [
  ['unknown external id', [service({ externalId: crid(99) })], ['.services.0.externalId service.unknown']],
  ['unknown id', [service({ id: id(99) })], ['.services.0.id service.unknown']],
  ['unknown in both', [service({ id: id(99), externalId: crid(99) })], ['.services.0.id service.unknown']],
  ['an id as external id', [service({ externalId: id(1) })], ['.services.0.externalId service.unknown']],
  [
    'the name of an inherited property',
    [service({ externalId: 'constructor' })],
    ['.services.0.externalId service.unknown'],
  ],
  [
    'id and external id of two livestreams',
    [service({ id: id(1), externalId: crid(2) })],
    ['.services.0.externalId service.ambiguous'],
  ],
  [
    'a known id, an unknown external id',
    [service({ id: id(1), externalId: crid(99) })],
    ['.services.0.externalId service.ambiguous'],
  ],
  [
    'an external id of several of the institution',
    [service({ externalId: crid('twins') })],
    ['.services.0.externalId service.ambiguous'],
  ],
  [
    'an external id that others have too',
    [service({ externalId: crid('shared') })],
    ['.services.0.externalId service.ambiguous'],
  ],
  [
    'a foreign livestream',
    [service({ externalId: crid(3) })],
    ['.services.0 service.institution.mismatch', '.services.0.publisherId service.publisher.mismatch'],
  ],
  [
    'a foreign livestream by id',
    [service({ id: id(3), externalId: crid(3) })],
    ['.services.0 service.institution.mismatch', '.services.0.publisherId service.publisher.mismatch'],
  ],
  [
    'another institution claimed',
    [service({ institutionId: B })],
    ['.services.0.institutionId service.institution.claim'],
  ],
  [
    'another publisher of the institution',
    [service({ publisherId: 'urn:org:publisher:8' })],
    ['.services.0.publisherId service.publisher.mismatch'],
  ],
  [
    'a foreign publisher',
    [service({ publisherId: 'urn:org:publisher:2' })],
    ['.services.0.publisherId service.publisher.mismatch'],
  ],
  [
    'a foreign livestream as its owner would name it',
    [service({ externalId: crid(3), publisherId: 'urn:org:publisher:2', institutionId: B })],
    ['.services.0 service.institution.mismatch', '.services.0.institutionId service.institution.claim'],
  ],
  [
    'an unknown one of another institution',
    [service({ externalId: crid(99), institutionId: B })],
    ['.services.0.externalId service.unknown', '.services.0.institutionId service.institution.claim'],
  ],
  [
    'wrong publisher and wrong claim',
    [service({ publisherId: 'urn:org:publisher:2', institutionId: B })],
    [
      '.services.0.publisherId service.publisher.mismatch',
      '.services.0.institutionId service.institution.claim',
    ],
  ],
  [
    'one bad among good ones',
    [service(), service({ externalId: crid(3) }), service()],
    ['.services.1 service.institution.mismatch', '.services.1.publisherId service.publisher.mismatch'],
  ],
  [
    'several bad ones, each by its own',
    [
      service({ externalId: crid(99) }),
      service(),
      service({ externalId: crid(3) }),
      service({ institutionId: B }),
    ],
    [
      '.services.0.externalId service.unknown',
      '.services.2 service.institution.mismatch',
      '.services.2.publisherId service.publisher.mismatch',
      '.services.3.institutionId service.institution.claim',
    ],
  ],
]

t.test('everything that disagrees is reported', async (t) => {
  for (const [name, services, expected] of refused) {
    const result = checkOwnership(services, A, feed)
    const errors = 'errors' in result ? result.errors : []
    t.strictSame(
      errors.map(({ path, errorCode }) => `${path} ${errorCode}`),
      expected,
      name,
    )
  }
})

t.test('the institution of the topic decides, not that of the payload', async (t) => {
  t.match(checkOwnership([service()], B, feed), {
    errors: [{ errorCode: 'service.institution.mismatch' }, { errorCode: 'service.institution.claim' }],
  })
})

t.test('messages help with what is one’s own and give nothing away of others', async (t) => {
  const messagesOf = (service: Service) => {
    const result = checkOwnership([service], A, feed)
    return 'errors' in result ? result.errors.map(({ message }) => message).join('\n') : ''
  }
  t.match(messagesOf(service({ publisherId: 'urn:org:publisher:8' })), 'expected urn:org:publisher:1')
  t.match(messagesOf(service({ id: id(1), externalId: crid(2) })), `expected ${crid(1)}`)
  t.match(messagesOf(service({ institutionId: B })), A)

  const foreign = messagesOf(service({ id: id(3), externalId: crid(3) }))
  t.notMatch(foreign, B)
  t.notMatch(foreign, 'urn:org:publisher:2')
  t.notMatch(messagesOf(service({ id: id(3), externalId: crid(1) })), crid(3))
})
