import { type EventKind, eventKinds } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import type { EarlierMessage } from '../queue/work-item.ts'
import {
  attributesOf,
  coversKind,
  coversLivestream,
  coversType,
  isForAll,
  named,
  type Selected,
} from './selected.ts'

/**
 * Returns a function that finds the newest events for a webhook since a time: at most `most` events, only those that it
 * gets, in the order of the journal. Control states of the past are over, and not among them.
 */
export function createEarlierEvents(parts: {
  journal: {
    latestOf(
      livestreamId: string,
      wanted: { topics: readonly string[]; since: number; count: number },
    ): Promise<readonly { topic: string; position: number; at: number }[]>
  }
  /** All livestreams with events. */
  livestreams: () => readonly string[]
  most: number
}) {
  const { journal, livestreams, most } = parts

  return async (selected: Selected, since: number): Promise<EarlierMessage[]> => {
    let found: EarlierMessage[] = []
    for (const livestreamId of isForAll(selected) ? livestreams() : named(selected)) {
      found.push(...(await ofLivestream(selected, livestreamId, since)))
      if (found.length > 2 * most) found = newest(found)
    }
    return newest(found)
  }

  async function ofLivestream(
    selected: Selected,
    livestreamId: string,
    since: number,
  ): Promise<EarlierMessage[]> {
    const wanted = eventKinds.filter((kind) => coversKind(selected, kind))
    const kinds = new Map(wanted.map((kind) => [radioTopic(livestreamId, kind), kind]))
    const messages = await journal.latestOf(livestreamId, { topics: [...kinds.keys()], since, count: most })
    return messages.flatMap(({ topic, position, at }) => {
      const kind = kinds.get(topic)
      if (!kind) return []
      return [{ position, at, describe: (message) => describe(selected, kind, livestreamId, message) }]
    })
  }

  function newest(messages: readonly EarlierMessage[]): EarlierMessage[] {
    return [...messages].sort((a, b) => a.position - b.position).slice(-most)
  }
}

/** Makes the same item as the planner. Messages of 3.0.0-beta.1 lack `institutionId`. */
function describe(
  selected: Selected,
  kind: EventKind,
  livestreamId: string,
  { payload, institutionId }: Parameters<EarlierMessage['describe']>[0],
) {
  const event = JSON.parse(payload.toString())
  if (!coversType(selected, kind, event)) return undefined
  const services: { id?: unknown; institutionId?: string }[] = event.services
  const ids = services.flatMap(({ id }) =>
    typeof id === 'string' && coversLivestream(selected, id) ? [id] : [],
  )
  const { institutionId: owner } = services.find(({ id }) => id === livestreamId) ?? {}
  // The messages of an event stand together in the journal, so the first counts.
  const livestreamIds = [...new Set(selected.livestreams === undefined ? [livestreamId] : [...ids])]
  const details = attributesOf(selected, {
    event: kind.name,
    livestreamIds,
    institutionId: institutionId ?? owner,
  })
  return { messageId: String(event.id), details }
}
