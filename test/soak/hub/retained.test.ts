import { readFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connectPublisher } from '../../clients.ts'
import { publishes, subscribe } from '../../conformance/peers.ts'
import { playing, playingTopic, station } from '../../events.ts'
import { rawClient } from '../../raw-client.ts'
import { startTestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

/* On Redis the publisher is connected to another node than the subscribers. */

const livestream = station(0, 0)
const topic = playingTopic(livestream)
const marker = station(0, 1)
const institution = livestream.institution.id

for (const [name, filter, qos, clean] of [
  ['QoS 0', topic, 0, true],
  ['QoS 1 and a wildcard', 'radio/+/track/playing', 1, true],
  ['a persistent session', topic, 1, false],
  ['a persistent session and a wildcard', 'radio/#', 1, false],
  ['a persistent session at QoS 0', topic, 0, false],
] as const) {
  onEachStore(
    `an event published right behind a SUBSCRIBE comes live or as retained, not both: ${name}`,
    async (t, store, driver) => {
      const hub = await startTestHub(t, store)
      const other = driver === 'redis' ? await startTestHub(t, store) : hub
      const login = await hub.subscriber('radio/#')
      const studio = await connectPublisher(t, other, await other.publisher([institution]), institution)
      await studio.publish(playing(marker, { title: 'end' }))
      await studio.publish(playing(livestream, { title: 'first' }))
      const ca = readFileSync(hub.caPath)
      const started = Date.now()
      for (let attempt = 0; attempt < 15; attempt++) {
        const client = await rawClient(t, hub.mqttPort, ca)
        await client.connect({
          ...login,
          password: Buffer.from(login.password),
          clientId: `c${attempt}`,
          clean,
        })
        const titles = () =>
          publishes(client)
            .filter((packet) => packet.topic === topic)
            .map(({ payload }) => JSON.parse(String(payload)).title)
        const start = new Date(started + attempt).toISOString()
        const title = `behind ${attempt}`
        subscribe(client, 1, { [filter]: qos })
        for (let turn = 0; turn < attempt % 5; turn++) await nextTurn()
        const published = studio.publish(playing(livestream, { title, start }))
        while (!titles().includes(title)) await client.next('publish', publishes(client).length)
        await published
        // The retained message of this filter marks the end of the first filter's retained messages.
        subscribe(client, 2, { [playingTopic(marker)]: 0 })
        const ends = () => publishes(client).filter((packet) => packet.topic === playingTopic(marker)).length
        const wanted = filter === 'radio/#' || filter.includes('+') ? 2 : 1
        while (ends() < wanted) await client.next('publish', publishes(client).length)
        t.equal(titles().filter((each) => each === title).length, 1, titles().join())
        t.equal(titles().at(-1), title, 'and nothing older follows')
        client.socket.destroy()
      }
    },
  )
}
