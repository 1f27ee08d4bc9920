import { readFileSync } from 'node:fs'
import { generate } from 'mqtt-packet'
import root from 'tap'
import { type Arrived, connect } from '../../clients.ts'
import { control, playing, station } from '../../events.ts'
import { rawClient } from '../../raw-client.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { type Issued, issue, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

/*
 * Kills a node under load up to 30 times, for at most 60 s. CRASH_ROUNDS sets another number, without a time limit.
 */
const rounds = Number(process.env.CRASH_ROUNDS ?? 30)
const longestMs = process.env.CRASH_ROUNDS ? Infinity : 60_000
// Starting a node takes most of the time. So both stores are tested at once.
root.jobs = 2

/** So many messages a publisher keeps in flight. Where it is one, its last one is acknowledged when the node is killed. */
function windowOf(round: number): number {
  return round % 2 === 0 ? 12 : 1 + (((round - 1) / 2) % 3)
}

type Hub = Awaited<ReturnType<typeof spawnHub>>

onEachStore(`kill -9 under load, up to ${rounds} times, loses nothing acknowledged`, async (t, store) => {
  const home = await temporaryDirectory(t)
  const env = { HUB_PUBLISH_RATE: '0', HUB_QUEUE_LIMIT: '1000000', ...store }
  const first = await spawnHub(t, home, env)
  const subscriber = await issue(first, { role: 'subscriber', label: 's', filters: ['radio/#'] })
  const publishers = await Promise.all(
    ([1, 2, 1, 2] as const).map(async (qos, index) => {
      const livestream = station(index, 0)
      const institutions = [livestream.institution.id]
      const login = await issue(first, { role: 'publisher', label: `p${index}`, institutions })
      return createPublisher(index, qos, login)
    }),
  )
  const offline = await connect(t, first, subscriber, { clientId: 'offline', clean: false })
  await offline.client.subscribeAsync('radio/#', { qos: 1 })
  await offline.client.endAsync()
  const online = createRecord()
  const record = createRecord()
  let hub = first
  let round = 0
  for (const began = performance.now(); round < rounds && performance.now() - began < longestMs; round++) {
    const app = await connect(t, hub, subscriber, { clientId: 'online', clean: false })
    await app.client.subscribeAsync('radio/#', { qos: 2 })
    // The number of events varies, so that each kill interrupts another step.
    const enough = 20 + ((round * 37) % 90)
    await Promise.all(publishers.map((publisher) => publisher.run(t, hub, enough, windowOf(round))))
    await hub.stop('SIGKILL')
    online.addAll(app.received.all)
    hub = await spawnHub(t, home, env)
    await newestAreRetained()
    // A returning session gets at most 1,000 messages. Let it come back before more are waiting.
    if (wanted().length > 700) await comeBack()
  }

  const acknowledged = acknowledgedNow()
  const published = new Set(publishers.flatMap((publisher) => [...publisher.published]))
  t.ok(
    acknowledged.length > round * 50,
    `${round} rounds, ${acknowledged.length} acknowledged of ${published.size}`,
  )

  const app = await connect(t, hub, subscriber, { clientId: 'online', clean: false })
  const missing = () => acknowledged.filter((marker) => !online.ids.has(marker))
  // After a crash, messages may come again: give up after twice as many as were published.
  for (let seen = 0; missing().length > 0 && seen <= 2 * published.size; ) {
    await app.received.until(() => true, seen).catch(() => t.same(missing(), [], 'lost'))
    seen = online.addAll(app.received.all, seen)
  }
  t.same(missing(), [], 'a connected subscriber gets every acknowledged event')
  t.same(
    [...online.ids.keys()].filter((marker) => !published.has(marker)),
    [],
    'and nothing that was not published',
  )
  for (const { qos, published: own } of publishers) {
    const twice = [...own].filter((marker) => (online.ids.get(marker)?.size ?? 0) > 1)
    if (qos === 2) t.same(twice, [], 'QoS 2 is processed once')
  }

  await comeBack()
  t.same(wanted(), [], 'an offline one every control event, and the last value of each track topic')
  t.same(
    [...record.ids.keys()].filter((marker) => !published.has(marker)),
    [],
  )
  t.equal(await hub.stop('SIGTERM'), 0, 'SIGTERM ends it well')

  function acknowledgedNow(): string[] {
    return publishers.flatMap((publisher) => [...publisher.acknowledged])
  }

  function lastTracks(): string[] {
    return publishers.flatMap(({ lastTrack }) => lastTrack() ?? [])
  }

  /** A subscriber that is new gets the last acknowledged track of each livestream, or one without an acknowledgement. */
  async function newestAreRetained(): Promise<void> {
    const { client, received } = await connect(t, hub, subscriber)
    await client.subscribeAsync('radio/+/track/playing', { qos: 1 })
    await received.count(publishers.length)
    const retained = createRecord()
    retained.addAll(received.all)
    t.same(
      lastTracks().filter((marker) => !retained.hasSince(marker)),
      [],
      'retained',
    )
    await client.endAsync()
  }

  /** The events that the session `offline` must get, and has not got yet. */
  function wanted(): string[] {
    const controls = acknowledgedNow().filter((marker) => marker.endsWith('control'))
    return [
      ...controls.filter((marker) => !record.ids.has(marker)),
      ...lastTracks().filter((marker) => !record.hasSince(marker)),
    ]
  }

  async function comeBack(): Promise<void> {
    const back = await connect(t, hub, subscriber, { clientId: 'offline', clean: false })
    for (let seen = 0; wanted().length > 0 && seen <= acknowledgedNow().length; ) {
      await back.received.until(() => true, seen).catch(() => t.same(wanted(), [], 'lost'))
      seen = record.addAll(back.received.all, seen)
    }
    await back.client.endAsync()
  }
})

interface Pending {
  marker: string
  topic: string
  payload: string
  released: boolean
}

/** A publisher that repeats unacknowledged messages after a reconnect, with the same identifiers. */
function createPublisher(index: number, qos: 1 | 2, { username, password }: Issued) {
  const livestream = station(index, 0)
  const pending = new Map<number, Pending>()
  const acknowledged = new Set<string>()
  const published = new Set<string>()
  const tracks: string[] = []
  let number = 0
  let lastId = 0

  return {
    qos,
    acknowledged,
    published,
    lastTrack: () => tracks.findLast((marker) => acknowledged.has(marker)),

    /** Publishes until `enough` messages are acknowledged. Further messages are still in flight then. */
    async run(t: Parameters<typeof rawClient>[0], hub: Hub, enough: number, window: number): Promise<void> {
      const client = await rawClient(t, hub.mqttPort, readFileSync(hub.caPath))
      await client.connect({ clientId: `p${index}`, clean: false, username, password: Buffer.from(password) })
      const send = (messageId: number, { topic, payload, released }: Pending, dup: boolean) => {
        if (released) client.send({ cmd: 'pubrel', messageId })
        else client.send(generate({ cmd: 'publish', topic, payload, qos, messageId, retain: false, dup }))
      }
      for (const [messageId, message] of pending) send(messageId, message, true)
      let answered = 0
      for (let next = 1; answered < enough; next++) {
        while (pending.size < window) {
          lastId = (lastId % 65_535) + 1
          const message = nextMessage()
          pending.set(lastId, message)
          send(lastId, message, false)
        }
        const packet = await client.at(next)
        const messageId = packet.messageId ?? 0
        const message = pending.get(messageId)
        if (!message) continue
        if (packet.cmd === 'pubrec') {
          message.released = true
          client.send({ cmd: 'pubrel', messageId })
        }
        if (packet.cmd === 'puback' || packet.cmd === 'pubrec') {
          acknowledged.add(message.marker)
          answered++
        }
        if (packet.cmd === 'puback' || packet.cmd === 'pubcomp') pending.delete(messageId)
      }
    },
  }

  function nextMessage(): Pending {
    number++
    const isControl = number % 2 === 0
    const marker = `${index}-${number}-${isControl ? 'control' : 'track'}`
    const time = new Date(Date.now()).toISOString()
    const validUntil = new Date(Date.now() + 3_600_000).toISOString()
    const event = isControl
      ? control(livestream, { name: `state-${number % 10}`, time, validUntil, marker })
      : playing(livestream, { playlistItemId: marker, start: time })
    published.add(marker)
    if (!isControl) tracks.push(marker)
    return {
      marker,
      topic: `inbox/${livestream.institution.id}`,
      payload: JSON.stringify(event),
      released: false,
    }
  }
}

/** Records the messages that arrived: for each marker, the ids of its events. */
function createRecord() {
  const ids = new Map<string, Set<string>>()
  /** By publisher. */
  const lastTracks = new Map<string, number>()
  return {
    ids,
    /** Adds the messages from the index `seen` on. Returns how many there are. */
    addAll(all: readonly Arrived[], seen = 0): number {
      for (const { json } of all.slice(seen)) {
        const marker = String(json.marker ?? json.playlistItemId)
        ids.set(marker, (ids.get(marker) ?? new Set()).add(String(json.id)))
        const [publisher = '', number, kind] = marker.split('-')
        if (kind === 'track')
          lastTracks.set(publisher, Math.max(lastTracks.get(publisher) ?? 0, Number(number)))
      }
      return all.length
    },
    /** Whether this track, or a later one of its publisher, arrived. The later one may have no PUBACK. */
    hasSince(marker: string): boolean {
      const [publisher = '', number] = marker.split('-')
      return (lastTracks.get(publisher) ?? 0) >= Number(number)
    },
  }
}
