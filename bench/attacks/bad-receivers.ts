import { join } from 'node:path'
import { playing, serviceOf } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import { openLightClient, paced } from '../load/light-client.ts'
import { publishPacket } from '../load/packets.ts'
import { subscribeWebhook } from '../user.ts'
import { type Attack, createAssault, type Target } from './attack.ts'
import { type Answer, type Receiver, startReceiver, startTcpReceiver, type TcpManner } from './receivers.ts'

/**
 * These webhooks use all delivery slots of one institution. It has 256 slots on a node, and at most 16 for one
 * endpoint. An institution has at most 50 webhooks of one livestream, so several livestreams are needed.
 */
const endpoints = 18
const webhooksEach = 16
const livestreamCount = 6
const publishEveryMs = 1_000
/** So many plugin targets or outputs misbehave. */
const badCount = 20

/** Subscribes hundreds of webhooks that answer so. The attack publishes events to them. */
export function badWebhooks(answers: readonly Answer[]): (target: Target) => Promise<Attack> {
  return async (target) => {
    const livestreams = target.livestreams.slice(0, livestreamCount)
    const receivers = await Promise.all(
      Array.from({ length: endpoints }, (_, index) =>
        startReceiver(nth(answers, index), { files: target.server }),
      ),
    )
    const publisher = await openPublisher(target, livestreams)
    await paced(endpoints * webhooksEach, 16, (index) => {
      const url = `https://localhost:${nth(receivers, index).port}/${index}`
      return subscribeWebhook(target, target.token, { url, topic: nth(livestreams, index).id })
    })
    return attackBy(publisher, receivers)
  }
}

/** What the configuration of the attacked node is made of. */
export interface BadSettings {
  /** Ports on which the attacker listens. */
  ports: readonly number[]
  livestreams: readonly Livestream[]
  /** A folder of the run. */
  directory: string
}

/** Of the configuration file of a node. */
export interface NodeSettings {
  plugins?: readonly object[]
  outputs?: readonly object[]
}

/** Plugin targets that answer so. Each gets every event of the attack. */
export function badTargets(answers: readonly Answer[]) {
  return {
    ports: badCount,
    settings: ({ ports }: BadSettings): NodeSettings => ({
      plugins: ports.map((port, index) => ({
        type: `bad-${index}`,
        autoEnable: true,
        url: `https://localhost:${port}/`,
      })),
    }),
    attack: {
      async prepare(target: Target): Promise<Attack> {
        const receivers = await Promise.all(
          target.ports.map((port, index) =>
            startReceiver(nth(answers, index), { port, files: target.server }),
          ),
        )
        return attackBy(await openPublisher(target, target.livestreams), receivers)
      },
    },
  }
}

/** Outputs that answer so, over HTTP to templates and as Icecast, and over TCP as encoders. */
export function badOutputs(answers: readonly Answer[], manners: readonly TcpManner[]) {
  const ways = [...answers, ...answers, ...manners]
  const isTcp = (index: number) => index >= answers.length * 2
  return {
    ports: ways.length,
    settings: ({ ports, livestreams }: BadSettings): NodeSettings => ({
      outputs: ports.map((port, index) => {
        const url = `http://127.0.0.1:${port}`
        const [first] = livestreams
        const named = (before: string) =>
          Object.fromEntries(livestreams.map(({ id }, number) => [id, `${before}${number}`]))
        const drivers = [
          { driver: 'url-template', url: `${url}/{name}?t={title}`, livestreams: named('') },
          { driver: 'icecast', url, username: 'admin', password: 'x', livestreams: named('/') },
        ]
        const overTcp = { driver: 'rds', host: '127.0.0.1', port, livestreams: { [first?.id ?? '']: 'FM' } }
        return {
          name: `bad-${index}`,
          ...(isTcp(index) ? overTcp : nth(drivers, Math.floor(index / answers.length))),
        }
      }),
    }),
    attack: {
      async prepare(target: Target): Promise<Attack> {
        const receivers = await Promise.all(
          target.ports.map((port, index) =>
            isTcp(index)
              ? startTcpReceiver(nth(manners, index), { port })
              : startReceiver(nth(answers, index), { port }),
          ),
        )
        return attackBy(await openPublisher(target, target.livestreams), receivers)
      },
    },
  }
}

/** Files of outputs in a folder that does not answer. */
export const slowFolder = {
  settings: ({ livestreams, directory }: BadSettings): NodeSettings => ({
    outputs: Array.from({ length: badCount }, (_, index) => ({
      name: `bad-${index}`,
      driver: 'dl-plus',
      file: join(directory, `${index}.dls`),
      livestreams: Object.fromEntries(livestreams.slice(0, 1).map(({ id }) => [id, 'DAB'])),
    })),
  }),
  slowFiles: (directory: string) => badNames.map((name) => join(directory, name)),
  attack: {
    prepare: async (target: Target): Promise<Attack> =>
      attackBy(await openPublisher(target, target.livestreams), []),
  },
}

/** The names under which the hub writes a file before it replaces one. */
const badNames = Array.from({ length: badCount }, (_, index) => `.${index}.dls.new`)

type Publisher = Awaited<ReturnType<typeof openPublisher>>

/** Publishes as long as the attack lasts. */
function attackBy(publisher: Publisher, receivers: readonly Receiver[]): Attack {
  return async (_target, force) => {
    const { seen, isOver, pause } = createAssault(force)
    while (!isOver()) {
      seen.bytes += publisher.publish()
      await pause(publishEveryMs)
    }
    for (const receiver of receivers) {
      const { units, bytes } = receiver.seen()
      seen.units += units
      seen.bytes += bytes
      receiver.close()
    }
    publisher.close()
    return seen
  }
}

/** Resolves when the livestreams have topics, which webhooks need. */
async function openPublisher(target: Target, livestreams: readonly Livestream[]) {
  let acknowledged = () => {}
  const { socket } = await openLightClient({
    address: { port: target.mqttPort, ca: target.ca },
    login: target.publisher,
    clientId: 'bad receivers',
    clean: true,
    onPacket(bytes, start) {
      if (bytes[start] === 0x40) acknowledged()
    },
  })
  let packetId = 0
  const send = (event: Record<string, unknown>, { institution }: Livestream) => {
    const payload = Buffer.from(JSON.stringify(event))
    socket.write(publishPacket(`inbox/${institution.id}`, ++packetId, payload))
    return payload.length
  }
  const first = nth(livestreams, 0)
  await new Promise<void>((resolve) => {
    acknowledged = resolve
    send(playing(first, { services: livestreams.map(serviceOf) }), first)
  })
  return {
    /** Publishes an event for each livestream. Returns their bytes. */
    publish: () =>
      livestreams.reduce(
        (sum, livestream) => sum + send(playing(livestream, { title: `title ${packetId}` }), livestream),
        0,
      ),
    close: () => socket.destroy(),
  }
}

/** The element at a place of a list that begins anew at its end. */
function nth<T>(list: readonly T[], index: number): T {
  const found = list[index % list.length]
  if (found === undefined) throw new Error('an empty list')
  return found
}
