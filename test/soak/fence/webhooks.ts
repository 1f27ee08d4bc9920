import type { Test } from 'tap'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { playing, stations } from '../../events.ts'
import { pushing, type Receiver, startReceiver } from '../../receiver.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { enter } from './client.ts'
import type { ClusterNode } from './cluster.ts'

/** One attempt of a delivery, noted when the request arrives. */
export interface Attempt {
  /** The webhook: the id of its livestream, `twinOf` it, or one of `severalLivestreams`. */
  webhook: string
  livestream: string
  /** When the request arrived, and when it was answered or its connection ended: milliseconds of `performance.now()`. */
  from: number
  until: number
  /** The `playlistItemId` of the event. */
  marker: string
  isAcknowledged: boolean
}

/** Webhooks for all livestreams, and how they are to be judged. */
export const severalLivestreams = {
  /** One order, one push at a time. */
  list: { livestreams: ['*'] },
  lanes: { livestreams: ['*'], ordering: 'livestream' },
  /** What is over may be passed over. */
  worth: { livestreams: ['*'], ordering: 'livestream', maxAge: 'element' },
} as const

/** A second webhook of a livestream: the two share the items of events. */
export function twinOf(livestream: string): string {
  return `twin of ${livestream}`
}

export type Webhooks = Awaited<ReturnType<typeof addWebhooks>>

/** Starts a receiver for webhooks. `env` has the settings with which nodes can push to it. */
export async function startWebhookServer(
  t: Test,
): Promise<{ receiver: Receiver; env: Record<string, string> }> {
  const receiver = await startReceiver(t, await temporaryDirectory(t))
  return { receiver, env: pushing(receiver) }
}

/** The first `count` livestreams of the sample feed, `perInstitution` of each institution at most. */
export function someLivestreams(count: number, perInstitution = 100): Livestream[] {
  return stations.flatMap((ofOne) => ofOne.slice(0, perInstitution)).slice(0, count)
}

/** Adds two webhooks for each livestream, and those for all, through `node`. No event waits for them yet. */
export async function addWebhooks(
  t: Test,
  node: ClusterNode,
  receiver: Receiver,
  livestreams: readonly Livestream[],
) {
  const attempts: Attempt[] = []
  /** How each webhook answers from now on. */
  const answers = new Map<string, { delayMs: number; status: number }>()
  receiver.behave(({ path, event, body }, response) => {
    const webhook = decodeURIComponent(path.slice(1))
    const livestream = body.message.attributes.livestreamId ?? ''
    const { delayMs, status } = answers.get(webhook) ?? answers.get(livestream) ?? { delayMs: 0, status: 201 }
    const marker = String(event.playlistItemId)
    const attempt: Attempt = {
      webhook,
      livestream,
      from: performance.now(),
      until: Infinity,
      marker,
      isAcknowledged: false,
    }
    attempts.push(attempt)
    const ended = () => {
      attempt.until = Math.min(attempt.until, performance.now())
    }
    response.on('close', ended)
    setTimeout(() => {
      ended()
      attempt.isAcknowledged = status < 300
      response.writeHead(status).end()
    }, delayMs)
    return undefined
  })

  const institutions = [...new Set(livestreams.map(({ institution }) => institution.id))]
  const login = await node.publisher(institutions)
  const studio = await enter(node, { login, clientId: 'makes topics', clean: true })
  for (const [index, livestream] of livestreams.entries()) {
    const payload = JSON.stringify(playing(livestream, { start: new Date(0).toISOString() }))
    const topic = `inbox/${livestream.institution.id}`
    await studio.publish({ topic, payload, qos: 1, messageId: index + 1, dup: false })
  }
  await studio.leave()

  const api = await openApi(t, node)
  for (const institution of institutions) {
    const { token } = await addUser(node, api, institution)
    for (const { id, institution: owner } of livestreams) {
      if (owner.id !== institution) continue
      for (const webhook of [id, twinOf(id)]) {
        const url = receiver.url(`/${encodeURIComponent(webhook)}`)
        const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: id, url }
        const { status, text } = await api.call('POST', '/subscriptions', { token, body })
        if (status !== 201) throw new Error(`POST /subscriptions answered ${status} ${text}`)
      }
    }
    if (institution !== institutions[0]) continue
    for (const [name, fields] of Object.entries(severalLivestreams)) {
      const [first] = livestreams
      const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: first?.id, ...fields }
      const url = receiver.url(`/${name}`)
      const { status, text } = await api.call('POST', '/subscriptions', { token, body: { ...body, url } })
      if (status !== 201) throw new Error(`POST /subscriptions answered ${status} ${text}`)
    }
  }

  return {
    attempts,
    /** `webhook`: one of a livestream, or a livestream, for all webhooks that have no answer of their own. */
    answer: (webhook: string, how: { delayMs: number; status: number }) => answers.set(webhook, how),
    answerAtOnce: () => answers.clear(),
    /** Whether the webhook of this livestream has acknowledged the event. */
    has: (livestream: string, marker: string): boolean =>
      attempts.some(
        (attempt) => attempt.isAcknowledged && attempt.livestream === livestream && attempt.marker === marker,
      ),
  }
}

/** The queues in which messages still wait, according to a node. */
export async function pendingQueues(node: ClusterNode): Promise<string[]> {
  const queues = await node.ask<{ name: string; pending: number; state: string }[]>('queues.list')
  return queues
    .filter(({ pending }) => pending > 0)
    .map(({ name, pending, state }) => `node ${node.index}: ${name} ${state}, ${pending} pending`)
}
