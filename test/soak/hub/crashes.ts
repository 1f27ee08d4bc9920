import { connect } from '../../clients.ts'
import { playing, playingTopic, station } from '../../events.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { issue, temporaryDirectory } from '../../start-hub.ts'
import { type Driver, onStore } from '../../stores.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

/** Kills a node `rounds` times during an event. The last acknowledged event must be retained. */
export function testCrashes(driver: Driver, rounds: number): void {
  onStore(driver, `an acknowledged event is retained after kill -9, ${rounds} times`, async (t, store) => {
    const home = await temporaryDirectory(t)
    const first = await spawnHub(t, home, store)
    const publisher = await issue(first, {
      role: 'publisher',
      label: 'p',
      institutions: [institution],
    })
    const subscriber = await issue(first, {
      role: 'subscriber',
      label: 's',
      filters: ['radio/#'],
    })
    await first.stop('SIGTERM')

    const lost: string[] = []
    let acknowledged = ''
    for (let round = 0; round <= rounds; round++) {
      const hub = await spawnHub(t, home, store)
      if (round > 0) {
        const app = await connect(t, hub, subscriber)
        await app.client.subscribeAsync(playingTopic(livestream), { qos: 1 })
        const { json } = await app.received.until(() => true)
        // A later event may be stored, although the node died before the PUBACK.
        if (Number(json.playlistItemId) < Number(acknowledged))
          lost.push(`${acknowledged}, found ${json.playlistItemId}`)
      }
      const { client } = await connect(t, hub, publisher)
      const inFlight = 1 + (round % 7)
      const acknowledgements = Array.from({ length: inFlight }, async (_, index) => {
        const playlistItemId = `${round * 10 + index}`
        const event = playing(livestream, { playlistItemId, start: new Date().toISOString() })
        await client.publishAsync(`inbox/${institution}`, JSON.stringify(event), {
          qos: round % 3 === 2 ? 2 : 1,
        })
        acknowledged = playlistItemId
      })
      for (const pending of acknowledgements) pending.catch(() => {})
      // Do not wait for the last event: the kill must interrupt the handling of this event.
      await acknowledgements[Math.max(0, inFlight - 2)]
      await hub.stop('SIGKILL')
    }
    t.same(lost, [])
  })

  onStore(driver, 'SIGTERM finishes and exits with 0', async (t, store) => {
    const hub = await spawnHub(t, await temporaryDirectory(t), store)
    t.equal(await hub.stop('SIGTERM'), 0)
  })
}
