import t from 'tap'
import { connectPublisher } from '../clients.ts'
import { openStream, type StreamReader } from '../event-stream.ts'
import { playing, station } from '../events.ts'
import { withoutRedis } from '../redis-server.ts'
import { startNetwork } from '../store/slow-network.ts'
import { startFleet } from './fleet.ts'

const livestream = station(0, 0)
const stream = `/livestreams/${livestream.id}/stream`

t.test(
  'who comes back to a node that lags behind misses nothing, and gets nothing twice',
  { skip: withoutRedis },
  async (t) => {
    const networks: Awaited<ReturnType<typeof startNetwork>>[] = []
    const { a, b } = await startFleet(t, 2, {
      env: { HUB_PUBLIC_PAGE: 'true' },
      async through(index, port) {
        const network = await startNetwork(t, port)
        networks[index] = network
        return network.url
      },
    })
    const institution = livestream.institution.id
    const { publish } = await connectPublisher(t, a, await a.publisher([institution]), institution)
    await publish(playing(livestream, { title: 'before' }))
    for (const path of [stream, `${stream}?delay=1`]) {
      const reader = await openStream(t, a, path)
      await reader.until(() => isReady(reader))
      networks[1]?.hold()
      await publish(playing(livestream, { title: `seen of ${path}` }))
      await reader.until(() => titlesOf(reader).at(-1) === `seen of ${path}`)
      reader.close()
      const back = await openStream(t, b, path, { headers: { 'last-event-id': String(reader.lastId()) } })
      networks[1]?.release()
      await back.until(() => isReady(back))
      await publish(playing(livestream, { title: `next of ${path}` }))
      await back.until(() => titlesOf(back).length > 0)
      t.same(titlesOf(back), [`next of ${path}`])
      t.equal(back.named('missed').length, 0)
      back.close()
    }
  },
)

function isReady(reader: StreamReader): boolean {
  return reader.named('ready').length > 0
}

function titlesOf(reader: StreamReader): unknown[] {
  return reader.named('playing').map(({ data }) => data.event?.title)
}
