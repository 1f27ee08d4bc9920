import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import { deriveLivestreamId } from '../../../event/derived-id.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { forgedName } from '../../event/forged-name.ts'
import { institutions, playing, serviceOf, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, onStore } from '../../stores.ts'
import { between } from '../../words.ts'

/*
 * Only the owner can publish for a livestream that the feed does not list, over HTTPS and MQTT: docs/decisions, "A
 * livestream outside of the feed has an owner".
 */
const path = '/events/de.org.hub.v1.radio.track.playing'
const [ours = '', theirs = ''] = institutions
const listed = station(0, 0)

/** A service for an unlisted livestream. `of`: our publisher (0) or theirs (1). */
const unlisted = (externalId: string, of = 0, fields: object = {}) => ({
  type: 'PermanentLivestream',
  externalId,
  publisherId: station(of).publisher.id,
  ...fields,
})

/** Adds a user of each institution. `we` and `they` publish as these users. */
async function open(t: Test, hub: TestHub) {
  const api = await openApi(t, hub)
  const [us, them] = [await addUser(hub, api, ours), await addUser(hub, api, theirs)]
  const publishAs = (token: string) => async (service: object, title: string) =>
    (await api.call('POST', path, { token, body: { ...playing(listed, { title }), services: [service] } }))
      .json
  return { api, us, them, we: publishAs(us.token), they: publishAs(them.token) }
}

const blocked = { statuses: { published: 0, blocked: 1, failed: 0 } }
const published = { statuses: { published: 1, blocked: 0, failed: 0 } }
const created = { statuses: { published: 0, blocked: 0, failed: 1 } }
const foreign = {
  ...blocked,
  errors: [{ path: '.body.services.0', errorCode: 'service.institution.mismatch' }],
}

/** Removes a livestream from the feed file. */
async function dropFromFeed(feed: string, livestreamId: string): Promise<void> {
  const { items } = JSON.parse(await readFile(feed, 'utf8'))
  const left = items.filter(({ id }: { id: string }) => id !== livestreamId)
  await writeFile(feed, JSON.stringify({ items: left }))
}

async function feedFile(t: Test): Promise<string> {
  const feed = join(await temporaryDirectory(t), 'feed.json')
  await writeFile(feed, await readFile(sampleFeedPath))
  return feed
}

onEachStore('an unlisted livestream belongs to the institution that made its topic', async (t, store) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, { ...store, ...pushing(receiver) }, home)
  const { api, us, we, they } = await open(t, hub)
  const externalId = 'crid://a-only.example/New1'
  const id = deriveLivestreamId('PermanentLivestream', externalId)
  t.match(await we(unlisted(externalId), 'makes the topic'), created)
  const body = { type: 'PUBSUB', method: 'PUSH', url: receiver.url(), contact: 'a@b.example', topic: id }
  t.equal((await api.call('POST', '/subscriptions', { token: us.token, body })).status, 201)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })

  t.match(await they(unlisted(externalId, 1), 'stolen'), foreign)
  const ways: [how: string, service: object][] = [
    ['with its id', unlisted(externalId, 1, { id })],
    ['as another type', unlisted(externalId, 1, { type: 'Livestream' })],
    ['as an event', unlisted(externalId, 1, { type: 'Event' })],
    ["under the owner's publisher", unlisted(externalId, 0)],
    ["under the owner's external publisher", unlisted(externalId, 0, { publisherId: '410100' })],
    ['by its id, with another name', unlisted('crid://b-only.example/1', 1, { id })],
    ['in lower case', unlisted(externalId.toLowerCase(), 1)],
    ['with an escaped letter', unlisted(externalId.replace('N', '%4E'), 1)],
    ['with the id of a listed one', unlisted(externalId, 1, { id: listed.id })],
    ['a listed one in upper case', unlisted(listed.externalId.replace('kw1', 'KW1'), 1)],
    [
      'a listed one with the end of another authority',
      unlisted(listed.externalId.replace('.example', '.EXAMPLE'), 1),
    ],
  ]
  for (const [how, service] of ways) t.match(await they(service, 'stolen'), blocked, how)
  t.match(await they(unlisted(` ${externalId}`, 1), 'stolen'), { message: 'Invalid input' })
  const alike = externalId.replace('New1', 'NEW1')
  t.match(await they(unlisted(forgedName('crid://b-only.example/', alike), 1), 'forged'), created)
  t.match(await they(unlisted(alike, 1), 'stolen'), foreign, 'under a name whose checksum they have made')
  const [answer] = [await they(unlisted(externalId, 1), 'stolen')]
  t.notOk(JSON.stringify(answer.errors).includes(ours), 'nobody is told whose it is')

  t.match(await we(unlisted(externalId), 'ours'), published)
  await receiver.until((received) => received.length > 0)
  await app.received.until(({ json }) => json.title === 'ours')
  t.same(
    app.received.all.map(({ json }) => json.title),
    ['ours'],
  )
  t.same(
    receiver.received.map(({ event }) => event.title),
    ['ours'],
  )

  await hub.close()
  const again = await startTestHub(t, { ...store, ...pushing(receiver) }, home)
  const restarted = await open(t, again)
  t.match(await restarted.they(unlisted(externalId, 1), 'stolen'), foreign, 'also after a restart')
  t.match(await restarted.we(unlisted(externalId), 'ours'), published)
})

onEachStore('a livestream that drops out of the feed keeps its last owner', async (t, store) => {
  const feed = await feedFile(t)
  const home = await temporaryDirectory(t)
  const env = { ...store, HUB_FEED: feed }
  const hub = await startTestHub(t, env, home)
  const { us, we, they } = await open(t, hub)
  const studio = await connectPublisher(t, hub, await hub.publisher([ours]), ours)
  t.equal((await studio.publish(playing(listed))).outcome, 'published')
  t.match(await they(unlisted(listed.externalId, 1), 'stolen'), blocked)

  await dropFromFeed(feed, listed.id)
  t.match(await hub.ask('feed.refresh', { force: false }), { ok: true, items: 59, itemsBefore: 60 })
  t.match(await they(unlisted(listed.externalId, 1), 'stolen'), foreign)
  for (const type of ['Livestream', 'Event']) {
    t.match(await they(unlisted(listed.externalId, 1, { type }), 'stolen'), foreign, type)
  }
  t.match(await they(unlisted(listed.externalId, 1, { id: listed.id }), 'stolen'), foreign)
  t.match(await we({ ...serviceOf(listed), id: listed.id }, 'ours'), {
    ...published,
    event: { services: [{ id: listed.id }] },
  })
  t.match(await studio.publish(playing(listed)), {
    outcome: 'blocked',
    errors: [{ errorCode: 'service.unknown' }],
  })

  await hub.close()
  const again = await startTestHub(t, env, home)
  const restarted = await open(t, again)
  t.match(await restarted.they(unlisted(listed.externalId, 1), 'stolen'), foreign, 'also after a restart')
  t.match(await restarted.we(serviceOf(listed), 'ours'), published)

  const { items } = JSON.parse(await readFile(feed, 'utf8'))
  const other = { ...listed, publisher: { ...station(1).publisher, institution: station(1).institution } }
  await writeFile(feed, JSON.stringify({ items: [...items, other] }))
  t.match(await again.ask('feed.refresh', { force: false }), { ok: true, items: 60 })
  t.match(await restarted.they(unlisted(listed.externalId, 1), 'theirs now'), published)
  t.match(await restarted.we(serviceOf(listed), 'ours'), blocked)
  await dropFromFeed(feed, listed.id)
  t.match(await again.ask('feed.refresh', { force: false }), { ok: true, items: 59 })
  t.match(await restarted.we(serviceOf(listed), 'ours'), foreign, 'the feed has decided again')
  t.match(await restarted.they(unlisted(listed.externalId, 1), 'theirs still'), published)
  t.ok(us.token)
})

onEachStore('a livestream that the feed renames keeps its old name', async (t, store) => {
  const home = await temporaryDirectory(t)
  const feed = await feedFile(t)
  const env = { ...store, HUB_FEED: feed }
  const hub = await startTestHub(t, env, home)
  const { we, they } = await open(t, hub)
  t.match(await we(serviceOf(listed), 'as it is listed'), created)
  const text = await readFile(feed, 'utf8')
  const name = JSON.stringify(listed.externalId)
  await writeFile(feed, text.replace(name, JSON.stringify('crid://renamed.example/1')))
  t.match(await hub.ask('feed.refresh', { force: false }), { ok: true, items: 60 })
  t.match(await they(unlisted(listed.externalId, 1), 'stolen'), foreign)
  t.match(await they(unlisted(`crid:${listed.externalId.slice(5).toUpperCase()}`, 1), 'stolen'), foreign)
  const ours = { ...published, event: { services: [{ id: listed.id }] } }
  t.match(await we(serviceOf(listed), 'by its old name'), ours)
  t.match(await we({ ...serviceOf(listed), externalId: 'crid://renamed.example/1' }, 'by its new name'), ours)

  await hub.close()
  const again = await startTestHub(t, env, home)
  const restarted = await open(t, again)
  t.match(await restarted.they(unlisted(listed.externalId, 1), 'stolen'), foreign, 'also after a restart')
  t.match(await restarted.we(serviceOf(listed), 'by its old name'), ours)
})

onEachStore('the last of its publisher that drops out is still published', async (t, store) => {
  const feed = await feedFile(t)
  const hub = await startTestHub(t, { ...store, HUB_FEED: feed })
  const { we } = await open(t, hub)
  const { items } = JSON.parse(await readFile(feed, 'utf8'))
  const publisher = {
    id: 'urn:org:publisher:last',
    externalId: 'last',
    title: '',
    institution: listed.institution,
  }
  const last = { ...listed, id: 'urn:org:livestream:last', externalId: 'last of all', publisher }
  await writeFile(feed, JSON.stringify({ items: [...items, last] }))
  await hub.ask('feed.refresh', { force: false })
  const service = { type: 'Livestream', externalId: 'last of all', publisherId: publisher.id }
  t.match(await we(service, 'listed'), created)
  await dropFromFeed(feed, last.id)
  await hub.ask('feed.refresh', { force: false })
  t.match(await we(service, 'dropped'), { ...published, event: { services: [{ id: last.id }] } })
})

onEachStore('of two institutions that make a topic at once the first has it', async (t, store) => {
  const hub = await startTestHub(t, store)
  const { we, they } = await open(t, hub)
  for (let number = 0; number < 5; number++) {
    const externalId = `crid://both.example/${number}`
    const first = await Promise.all([
      we(unlisted(externalId), 'ours'),
      they(unlisted(externalId, 1), 'theirs'),
    ])
    t.same(first.map(({ statuses }) => Object(statuses).failed).sort(), [0, 1], 'one made it')
    const second = [await we(unlisted(externalId), 'ours'), await they(unlisted(externalId, 1), 'theirs')]
    t.same(second.map(({ statuses }) => Object(statuses).published).sort(), [0, 1], 'and only one has it')
    const owner = first.findIndex(({ statuses }) => Object(statuses).failed === 1)
    t.match(second[owner], published)
  }
})

onStore('redis', 'what one node knows of owners all nodes know', async (t, store) => {
  const feed = await feedFile(t)
  const home = await temporaryDirectory(t)
  const env = { ...store, HUB_FEED: feed }
  const [a, b] = [await startTestHub(t, env, join(home, 'a')), await startTestHub(t, env, join(home, 'b'))]
  const atA = await open(t, a)
  const apiB = await openApi(t, b)
  const { token } = await addUser(b, apiB, theirs)
  const they = async (service: object) =>
    (await apiB.call('POST', path, { token, body: { ...playing(listed), services: [service] } })).json
  const externalId = 'crid://a-only.example/new1'
  t.match(await atA.we(unlisted(externalId), 'makes the topic'), created)
  t.match(await they(unlisted(externalId, 1)), foreign)
  await dropFromFeed(feed, listed.id)
  await a.ask('feed.refresh', { force: false })
  await b.until(async () => (await b.ask<{ items: number }>('feed.status')).items === 59)
  t.match(await they(unlisted(listed.externalId, 1)), foreign)

  for (let number = 0; number < 5; number++) {
    const externalId = `crid://both.example/${number}`
    await Promise.all([atA.we(unlisted(externalId), ''), they(unlisted(externalId, 1))])
    // A node reads all earlier commits before it answers a command: now both nodes know the owner.
    await Promise.all([a.ask('credentials.list'), b.ask('credentials.list')])
    const results = [await atA.we(unlisted(externalId), 'again'), await they(unlisted(externalId, 1))]
    t.same(results.map(({ statuses }) => Object(statuses).published).sort(), [0, 1], 'one of them has it')
  }
})

onEachStore(
  'the external id of an unlisted livestream has the form crid://<authority>/<id>',
  async (t, store) => {
    const feed = await feedFile(t)
    const { items } = JSON.parse(await readFile(feed, 'utf8'))
    const odd = {
      ...listed,
      id: 'urn:org:livestream:odd',
      externalId: 'any name',
      publisher: { ...listed.publisher, institution: listed.institution },
    }
    await writeFile(feed, JSON.stringify({ items: [...items, odd] }))
    const hub = await startTestHub(t, { ...store, HUB_FEED: feed })
    const { we, api, us } = await open(t, hub)
    for (const externalId of [
      '',
      ' ',
      'crid://x/y\n',
      ' crid://x/y',
      'crid://x/\u0000',
      'crid://x/\u200b',
      'crid://x/\u0085y',
      ...between(`
        foo | http://x | crid:/x/y | crid:// | crid://x | crid://x/ | crid:///y | crid://x /y | crid://x/y z |
        bcrid://x/y | CRID://x/y
      `),
    ]) {
      const body = { ...playing(listed), services: [serviceOf(listed), unlisted(externalId)] }
      const { status, json } = await api.call('POST', path, { token: us.token, body })
      t.equal(status, 400, JSON.stringify(externalId))
      t.match(json.errors, [
        {
          path: '.body.services.1.externalId',
          message: /expected crid:\/\/<authority>\/<id>$/,
          errorCode: 'pattern.openapi.validation',
        },
      ])
    }
    t.match(await we(unlisted('any name'), 'listed as it is'), created)
    t.match(await we(unlisted('crid://x.example/ü/y?z=1'), ''), created)
    t.match(await api.call('GET', '/topics', { token: us.token }), { json: { length: 2 } })
  },
)
