import t from 'tap'
import { control, institutions, station } from '../../events.ts'
import { withoutRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode } from '../../start-hub.ts'
import { until } from '../../until.ts'
import { type Client, enter } from '../fence/client.ts'
import { startWorkers } from './start-workers.ts'

const [own = ''] = institutions
const livestream = station()
const clientId = 'studio'

/** When the hub loses the connection of the publisher. */
const moments = ['the PUBLISH is out', 'PUBREC has come', 'the PUBREL is out'] as const

t.test('an event at QoS 2 comes once, whichever process dies', { skip: withoutRedis }, async (t) => {
  const started = await startWorkers(t)
  const login = await started.publisher([own])
  const ports = { HUB_MQTT_PORT: String(started.hub.mqttPort), HUB_HTTPS_PORT: String(started.hub.httpsPort) }
  let { hub } = started
  let client = await comeIn()
  let messageId = 0

  /** Publishes at QoS 2, with all repetitions that it takes. */
  async function publish(name: string, lose: (moment: (typeof moments)[number]) => Promise<void>) {
    messageId++
    const payload = JSON.stringify({ ...control(livestream), name })
    const message = { topic: `inbox/${own}`, payload, qos: 2 as const, messageId }
    const first = client.publish({ ...message, dup: false })
    await Promise.all([lose(moments[0]), first.catch(() => undefined)])
    await insist(first, () => client.publish({ ...message, dup: true }))
    await lose(moments[1])
    const release = () => client.release(message.messageId)
    const released = release()
    await Promise.all([lose(moments[2]), released.catch(() => undefined)])
    await insist(released, release)
  }

  /** Repeats what the publisher sent until the hub answers, each time in a new connection. */
  async function insist(answer: Promise<void>, again: () => Promise<void>): Promise<void> {
    await until(async () => {
      try {
        await answer
        return true
      } catch {
        client.cut()
        client = await comeIn()
        answer = again()
        return false
      }
    })
  }

  function comeIn(): Promise<Client> {
    return new Promise((resolve) => {
      const attempt = () => enter({ ...hub, index: 0 }, { login, clientId, clean: false })
      void until(async () => {
        const found = await attempt().catch(() => undefined)
        if (found) resolve(found)
        return found !== undefined
      })
    })
  }

  async function killWorker(): Promise<void> {
    const clients = await askNode<{ clientId: string; node: string }[]>(hub.adminSocket, 'clients.list', {})
    const { node } = clients.find((each) => each.clientId === clientId) ?? {}
    if (node !== undefined) process.kill(Number(node.split(':').at(-1)), 'SIGKILL')
  }

  const names: string[] = []
  for (const moment of moments) {
    for (const die of [killWorker, restart]) {
      const name = `${moment}, ${die.name}`
      await publish(name, async (at) => {
        if (at !== moment) return
        await die()
        await client.closed
      })
      names.push(name)
    }
  }
  const { events } = await askNode<{ events: { name: string }[] }>(hub.adminSocket, 'events.list', {
    livestream: livestream.id,
  })
  t.same(events.map(({ name }) => name).reverse(), names)

  /** Ends the whole hub, and starts it again. */
  async function restart(): Promise<void> {
    await hub.stop('SIGTERM')
    hub = await spawnHub(t, started.home, { ...started.env, ...ports })
  }
})
