import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { createMembership } from '../../store/nodes/membership.ts'
import { touches } from '../broker/failing-store.ts'
import { openFailing } from '../conformance/peers.ts'
import { rawClient } from '../raw-client.ts'
import { createSharedSpace, settled } from '../shared-store.ts'
import { until } from '../until.ts'

t.test(
  'a client whose will is being published while its node returns is closed, so that it comes back with its will',
  async (t) => {
    const directory = t.testdir()
    const space = createSharedSpace()
    const openNode = async (name: string) => {
      const shared = space.openFollowed(t)
      const nodes = await createMembership({
        store: shared,
        name,
        idFile: join(directory, name),
        log: pino({ level: 'silent' }),
        onGap: (reason) => void t.error(reason),
        heartbeatMs: 20,
      })
      const { broker, store } = await openFailing(t, { node: { store: shared, nodes } })
      await nodes.join()
      t.teardown(() => nodes.leave())
      await broker.broker.start()
      return { broker, store, shared, nodes }
    }
    const other = await openNode('other')
    const own = await openNode('own')
    const client = await rawClient(t, own.broker.port)
    await client.connect({
      clientId: 'studio',
      will: { topic: 'will', payload: Buffer.from('gone'), qos: 0, retain: false },
    })

    const publishing = other.store.hold(touches('will/'))
    own.shared.lag()
    await publishing
    t.notOk(other.nodes.isLiving(own.nodes.self), 'the other node took it for gone, and is about to publish')
    own.shared.restore()
    await until(() => other.nodes.isLiving(own.nodes.self))
    // Twice: the node asks for its wills after its return, and reads the answer.
    await settled(own.shared, other.shared)
    await settled(own.shared, other.shared)
    t.notOk(client.isClosed, 'nothing is published yet')
    other.store.release()
    await client.closed()
  },
)
