import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connectPublisher } from '../../../clients.ts'
import { playing, station } from '../../../events.ts'
import { startIcecast, withoutIcecast } from '../../../icecast-server.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

t.jobs = 4

/** A hub whose output `web` shows the livestream on a mount of an Icecast server. */
async function openWeb(t: Test, mount: string, fields: Record<string, unknown> = {}) {
  const icecast = await startIcecast(t)
  const home = await temporaryDirectory(t)
  const output = {
    name: 'web',
    driver: 'icecast',
    url: icecast.url,
    username: 'admin',
    password: icecast.passwords.admin,
    livestreams: { [livestream.id]: mount },
    ...fields,
  }
  writeFileSync(join(home, 'hub.json'), JSON.stringify({ outputs: [output] }))
  const hub = await startTestHub(
    t,
    { HUB_CONFIG: join(home, 'hub.json'), HUB_DATA_DIR: join(home, 'data') },
    home,
  )
  const { publish } = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const lane = async () => {
    const [found] =
      await hub.ask<{ state: string; title: string; lastReason: string; stale: number }[]>('outputs.list')
    return found
  }
  return { icecast, hub, publish, lane }
}

t.test(
  'listeners of a mount see what plays, whatever is in the title',
  { skip: withoutIcecast },
  async (t) => {
    const { icecast, hub, publish, lane } = await openWeb(t, '/utf8.mp3')
    await icecast.source('/utf8.mp3')
    const { titles } = await icecast.listener('/utf8.mp3')
    const seen = (title: string) =>
      hub.until(async () => titles.at(-1)?.toString() === `StreamTitle='${title}';`)

    await publish(playing(livestream, { title: 'Größe', artist: 'Ä Ж 🎵' }))
    await seen('Ä Ж 🎵 - Größe')
    t.equal((await icecast.status('/utf8.mp3'))?.title, 'Ä Ж 🎵 - Größe')
    await publish(playing(livestream, { title: "It's; a'; b = c & d + e % f", artist: null }))
    await seen('It’s, a’, b = c & d + e % f')
    t.equal((await icecast.status('/utf8.mp3'))?.title, 'It’s, a’, b = c & d + e % f')
    await publish(playing(livestream, { title: '1.', artist: null }))
    await seen('1.\u00a0')
    t.equal((await icecast.status('/utf8.mp3'))?.title, '1.\u00a0', 'the status page is JSON')
    await publish(playing(livestream, { title: 'x'.repeat(3_000), artist: 'y'.repeat(3_000), type: 'news' }))
    await seen('y'.repeat(255))
    t.match(await lane(), { state: 'shown', stale: 0 })
  },
)

t.test(
  'a mount without a source gets the title when one comes, also after a break',
  { skip: withoutIcecast },
  async (t) => {
    const { icecast, hub, publish, lane } = await openWeb(t, '/live.mp3')
    await publish(playing(livestream, { title: 'Before the source', artist: null }))
    await hub.until(async () => (await lane())?.state === 'retrying')
    t.match(await lane(), { lastReason: 'answered 400' })
    const end = await icecast.source('/live.mp3')
    await hub.until(async () => (await icecast.status('/live.mp3'))?.title === 'Before the source')

    await end()
    await hub.until(async () => (await icecast.status('/live.mp3')) === undefined)
    await icecast.source('/live.mp3')
    t.equal((await icecast.status('/live.mp3'))?.title, undefined, 'a new source has no title')
    await hub.until(async () => (await icecast.status('/live.mp3'))?.title === 'Before the source')
  },
)

t.test(
  'a test sends a made-up title and shows no secret; what plays comes back',
  { skip: withoutIcecast },
  async (t) => {
    const { icecast, hub, publish } = await openWeb(t, '/utf8.mp3')
    await icecast.source('/utf8.mp3')
    const { titles } = await icecast.listener('/utf8.mp3')
    await publish(playing(livestream, { title: 'Real', artist: null }))
    await hub.until(async () => titles.at(-1)?.toString() === `StreamTitle='Real';`)
    const tested = await hub.ask<Record<string, unknown>>('outputs.test', {
      name: 'web',
      livestream: livestream.title,
    })
    t.match(tested, {
      delivered: true,
      status: 200,
      request: /^GET http:.*song=Now-Playing/,
      answer: /update successful/,
    })
    t.notMatch(JSON.stringify([tested, await hub.ask('config')]), icecast.passwords.admin)
    await hub.until(async () => titles.some((title) => title.toString().includes('Now-Playing Hub - Test')))
    await hub.until(async () => titles.at(-1)?.toString() === `StreamTitle='Real';`)
  },
)
