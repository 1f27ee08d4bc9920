import type { Test } from 'tap'
import { eventKinds } from '../../../event/kind.ts'
import { radioTopic } from '../../../event/topic.ts'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import type { ClusterNode } from './cluster.ts'
import type { Journaled } from './judge-streams.ts'
import { markerOf } from './publishers.ts'

/** The messages of these livestreams, in the order of positions, as a node lists them. */
export async function readJournal(
  t: Test,
  node: Pick<ClusterNode, 'ask' | 'httpsPort' | 'caPath'>,
  livestreams: readonly [Livestream, ...Livestream[]],
): Promise<Journaled[]> {
  const api = await openApi(t, node)
  const [{ institution }] = livestreams
  const { token } = await addUser(node, api, institution.id, { permissions: ['subscribe'] })
  const all: Journaled[] = []
  for (const { id } of livestreams) {
    for (let before: number | null = Number.MAX_SAFE_INTEGER; before !== null; ) {
      const path = `/livestreams/${id}/events?limit=200&before=${before}`
      const { status, json, text } = await api.call('GET', path, { token })
      if (status !== 200) throw new Error(`${path} answered ${status} ${text}`)
      const { events, next } = json as unknown as Page
      for (const { position, event } of events) all.push(journaled(id, position, event))
      before = next
    }
  }
  return all.sort((a, b) => a.position - b.position)
}

interface Page {
  events: { position: number; event: Record<string, unknown> }[]
  next: number | null
}

function journaled(livestream: string, position: number, event: Record<string, unknown>): Journaled {
  const kind = eventKinds.find(({ name }) => name === event.event)
  if (!kind) throw new Error(`there is no kind ${event.event}`)
  return {
    position,
    topic: radioTopic(livestream, kind),
    marker: `${livestream} ${markerOf(JSON.stringify(event))}`,
    slot: kind.slotField === undefined ? '' : String(event[kind.slotField]),
    time: Date.parse(String(event[kind.timeField])),
  }
}
