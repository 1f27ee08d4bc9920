import { call } from '../../../cli/connection.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { builtServer } from '../../compiled-server.ts'
import { playing, station } from '../../events.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

/*
 * Other tests start a bundled node. This test starts a node as it is installed.
 */

const livestream = station()
const institution = livestream.institution.id

onEachStore('a node that was built starts, distributes an event, and ends', async (t, store) => {
  const server = await builtServer()
  const hub = await spawnHub(t, await temporaryDirectory(t), store, { server })
  const issue = async (request: Record<string, unknown>) => {
    const answer = await call(hub.adminSocket, 'credentials.add', { label: 'l', ...request }, 'tester')
    if ('error' in answer) throw new Error(answer.error.message)
    return answer.result as { username: string; password: string }
  }
  const app = await connect(t, hub, await issue({ role: 'subscriber', filters: ['radio/#'] }))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const login = await issue({ role: 'publisher', institutions: [institution] })
  const publisher = await connectPublisher(t, hub, login, institution)
  t.match(await publisher.publish(playing(livestream, { title: 'built' })), { outcome: 'published' })
  t.match((await app.received.until(() => true)).json, { title: 'built' })
  t.equal(await hub.stop('SIGTERM'), 0)
})
