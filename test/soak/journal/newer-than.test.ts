import { join } from 'node:path'
import { createNewerThan } from '../../../journal/history/newer-than.ts'
import { openJournal } from '../../../journal/journal.ts'
import { runHubctl } from '../../cli/run-hubctl.ts'
import { connectPublisher } from '../../clients.ts'
import { control, institutions, playing, playingTopic, serviceOf, station } from '../../events.ts'
import { openStore } from '../../open-store.ts'
import { createRandom } from '../../random.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'
import { onEachStore, onStore, type StoreSettings } from '../../stores.ts'

/*
 * For an event that came late, `hubctl events show` names the newer event that was retained. A node that is not certain
 * names none.
 */
const [own = ''] = institutions
const livestream = station()

interface Topic {
  topic: string
  position: number
  retained: boolean
  newer: { id: string; title: string; eventTime: string; position: number } | null
}

const topicsOf = async (hub: Pick<TestHub, 'ask'>, id: string | null) =>
  (await hub.ask<{ topics: Topic[] }>('events.show', { id })).topics
const newerThan = async (hub: Pick<TestHub, 'ask'>, id: string | null) =>
  (await topicsOf(hub, id)).map(({ newer }) => newer?.title ?? null)

/** The time in `seconds` seconds, ISO 8601. */
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()

async function startStudio(t: Parameters<typeof startTestHub>[0], store: StoreSettings, directory?: string) {
  const hub = await startTestHub(t, { ...store, HUB_PUBLISH_RATE: '0' }, directory)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  /** Publishes a track, and picks its report from all reports by the title. */
  const publish = async (title: string, start: string, services = [livestream]) => {
    const seen = studio.received.all.length
    const event = { title, start, playlistItemId: title, services: services.map(serviceOf) }
    await studio.publish(playing(livestream, event))
    const { json } = await studio.received.until(({ json }) => json.playlistItemId === title, seen)
    return json.id as string | null
  }
  return { hub, studio, publish }
}

onEachStore('an event that came late is shown with the newer one that was there', async (t, store) => {
  const { hub, studio, publish } = await startStudio(t, store)
  const first = await publish('First', inSeconds(-300))
  const start = inSeconds(-100)
  const shown = await publish('Shown', start)
  const late = await publish('Late', inSeconds(-200))
  const later = await publish('Still later', inSeconds(-250))
  const same = await publish('Same time', start)
  const both = await publish('In both', inSeconds(-200), [livestream, station(0, 1)])
  const next = await publish('Next', inSeconds(-10))
  const state = await studio.publish(control(livestream))

  const asked = async (node: TestHub) => {
    t.match((await topicsOf(node, late))[0], {
      topic: playingTopic(livestream),
      retained: false,
      newer: { id: shown, title: 'Shown', eventTime: start, position: Number },
    })
    t.same(await newerThan(node, later), ['Shown'])
    t.same(await newerThan(node, both), ['Same time', null], 'each topic for itself')
    for (const id of [first, shown, same, next, state.id]) t.same(await newerThan(node, id), [null])
  }
  await asked(hub)
  await hub.close()
  await asked(await startTestHub(t, store, hub.home))
})

onEachStore('of a control state whose time is over it is said until when it was valid', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  const hubctl = async (...words: string[]) =>
    (await runHubctl(['--socket', hub.adminSocket, ...words])).stdout
  const lasting = await studio.publish(control(livestream, { name: 'lasting', validUntil: inSeconds(3_600) }))
  t.notMatch(await hubctl('events', 'show', String(lasting.id)), /Not shown/)
  const { id } = await studio.publish(control(livestream, { validUntil: inSeconds(5) }))
  await hub.until(async () => (await topicsOf(hub, id))[0]?.retained === false)
  t.match(
    await hubctl('events', 'show', String(id)),
    /Not shown on radio\/\S+ any more: valid until 20\S+\.\n/,
  )

  t.notMatch(await hubctl('events', 'list', '--livestream', livestream.id), /again/)
  const track = playing(livestream)
  for (const _ of [1, 2]) await studio.publish(track)
  t.match(await hubctl('events', 'list', '--livestream', livestream.id), /published, again/)
})

onEachStore('nothing is said of an event that may have been shown', async (t, store) => {
  const { hub, publish } = await startStudio(t, store)
  const topic = playingTopic(livestream)
  await publish('Shown', inSeconds(-100))
  await hub.ask('retained.clear', { topic })
  const cleared = await publish('After it was cleared', inSeconds(-200))
  t.match(await topicsOf(hub, cleared), [{ retained: true, newer: null }])
  await publish('Shown again', inSeconds(-50))
  t.same(await newerThan(hub, cleared), [null])
  const late = await publish('Late', inSeconds(-60))
  t.same(await newerThan(hub, late), ['Shown again'], 'of events after that it is certain')

  await publish('Far ahead', inSeconds(3_600))
  await publish('Replaces it', inSeconds(-150))
  const older = await publish('Older than what was before', inSeconds(-100))
  t.match(await topicsOf(hub, older), [{ retained: true }])
  await publish('New', inSeconds(-1))
  t.same(await newerThan(hub, older), [null])
})

onEachStore('what is said of random events is what happened', async (t, store) => {
  const { hub, publish } = await startStudio(t, store)
  const random = createRandom('late')
  let lateOnes = 0
  for (let nth = 0; nth < 60; nth++) {
    // An event more than 600 s ahead does not keep out older events.
    const seconds = random.happens(0.1) ? random.between(500, 800) : random.between(-60, 60)
    const id = await publish(`${nth}`, inSeconds(seconds))
    const [topic] = await topicsOf(hub, id)
    if (topic?.retained) t.equal(topic.newer, null, `${nth} was shown`)
    else if (topic?.newer) lateOnes++
  }
  t.ok(lateOnes > 0)
})

onStore('embedded', 'nothing is said where a clock was set back', async (t, store) => {
  const real = Date.now
  let back = 0
  t.intercept(Date, 'now', { value: () => real() - back })
  const { hub, publish } = await startStudio(t, store)
  await publish('Shown', inSeconds(60))
  const late = await publish('Late', inSeconds(-60))
  back = 20 * 60_000
  const older = await publish('Older', inSeconds(0))
  t.match(await topicsOf(hub, older), [{ retained: true, newer: null }])
  back = 0
  await publish('New', inSeconds(61))
  t.same(await newerThan(hub, older), [null])
  t.same(await newerThan(hub, late), [null], 'it is certain no more')
})

onStore('embedded', 'nothing is said where events in between may be kept no more', async (t, store) => {
  const { hub, publish } = await startStudio(t, store)
  const shown = await publish('Shown', inSeconds(-100))
  const late = await publish('Late', inSeconds(-200))
  const [position, latePosition] = await Promise.all(
    [shown, late].map(async (id) => (await topicsOf(hub, id))[0]?.position ?? 0),
  )
  await hub.close()
  const kept = await openStore(t, join(hub.home, 'data', 'store'))
  const journal = await openJournal(kept)
  const newer = async () => {
    const message = await journal.get(latePosition ?? 0)
    return (await createNewerThan({ store: kept, journal })(message ? [message] : [])).map(
      (one) => one?.position,
    )
  }
  journal.raiseFloor(position ?? 0)
  t.same(await newer(), [position])
  journal.raiseFloor((position ?? 0) + 1)
  t.same(await newer(), [undefined])
})

onStore('redis', 'several nodes say the same of an event that came late', async (t, store) => {
  const { hub: a, publish: atA } = await startStudio(t, store)
  const { hub: b, publish: atB } = await startStudio(t, store)
  await atA('Shown', inSeconds(-100))
  const late = await atB('Late', inSeconds(-200))
  const older = await atA('Older', inSeconds(-150))
  await atB('Next', inSeconds(-10))
  for (const hub of [a, b]) {
    t.same(await newerThan(hub, late), ['Shown'])
    t.same(await newerThan(hub, older), ['Shown'])
  }
  await a.ask('retained.clear', { topic: playingTopic(livestream) })
  for (const hub of [a, b]) t.same(await newerThan(hub, late), [null], 'whoever cleared it')
})
