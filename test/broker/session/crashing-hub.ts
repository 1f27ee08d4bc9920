import type { Test } from 'tap'
import type { Message } from '../../../event/message.ts'
import { createOnlyNode } from '../../../store/nodes/nodes.ts'
import type { Store } from '../../../store/store.ts'
import { openBroker, type Peer, peer, publishes } from '../../conformance/peers.ts'
import { createSharedSpace } from '../../shared-store.ts'

export const persistent = { clean: false }

/** A hub whose node can crash. The next `start` starts another node on the same store. */
export function openHub(t: Test) {
  const space = createSharedSpace()
  const directory = t.testdir()
  let cut = () => {}
  let run = 0
  return {
    async start(options: Parameters<typeof openBroker>[1] = {}) {
      const store = space.open()
      cut = () => store.cut()
      const node = { store, nodes: createOnlyNode(`run ${++run}`) }
      return openBroker(t, { directory, node, ...options })
    },
    crash: () => cut(),
  }
}

/** Logs a client in again. It acknowledges every QoS 1 message. */
export async function returning(t: Test, broker: Awaited<ReturnType<typeof openBroker>>, clientId: string) {
  const client = await peer(t, broker, clientId, persistent)
  acknowledgeAll(client)
  return client
}

export function acknowledgeAll(client: Peer): void {
  let acknowledged = 0
  const acknowledge = () => {
    for (const { messageId = 0, qos } of publishes(client).slice(acknowledged)) {
      if (qos === 1) client.send({ cmd: 'puback', messageId })
      acknowledged++
    }
  }
  acknowledge()
  client.socket.on('data', acknowledge)
}

export async function leave(client: Peer): Promise<void> {
  client.send({ cmd: 'disconnect' })
  await client.closed()
}

/** With this store, a crash loses all acknowledgements since the log-in. */
export function withoutProgress(store: Store): Store {
  const isProgress = (change: object) => 'put' in change && String(change.put).startsWith('progress/')
  return {
    ...store,
    commit: (changes, underway) =>
      changes.some(isProgress) ? Promise.reject(new Error('not now')) : store.commit(changes, underway),
  }
}

export function message(topic: string, payload: string): Message {
  return { topic, payload: Buffer.from(payload), qos: 1, queue: { keep: 'every' } }
}

export function many(count: number, topic: string): Message[] {
  return Array.from({ length: count }, (_, n) => message(`${topic}/${n}`, `${n}`))
}

export function title(payload: string, time: number): Message {
  const rules = { retained: { slot: '', time }, queue: { keep: 'latest' as const, time } }
  return { ...message('radio/x/track', payload), stream: 'x', ...rules }
}
