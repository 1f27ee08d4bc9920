import type { EventKind } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import type { EarlierMessage } from '../queue/work-item.ts'
import { pushedKinds } from './subscription.ts'

/**
 * Returns a function that finds the newest events of a livestream since a time: at most `most` events, only of kinds
 * that webhooks get, in the order of the journal.
 */
export function createEarlierEvents(
  journal: {
    latestOf(
      livestreamId: string,
      wanted: { topics: readonly string[]; since: number; count: number },
    ): Promise<readonly { topic: string; position: number; at: number }[]>
  },
  most: number,
) {
  return async (livestreamId: string, since: number): Promise<EarlierMessage[]> => {
    const kinds = new Map(pushedKinds.map((kind) => [radioTopic(livestreamId, kind), kind]))
    const wanted = { topics: [...kinds.keys()], since, count: most }
    const messages = await journal.latestOf(livestreamId, wanted)
    return messages.flatMap(({ topic, position, at }) => {
      const kind = kinds.get(topic)
      return kind ? [{ position, at, describe: (message) => describe(kind, livestreamId, message) }] : []
    })
  }
}

/** Makes the same item as the planner. Messages of 3.0.0-beta.1 lack `institutionId`. */
function describe(
  { name }: EventKind,
  livestreamId: string,
  { payload, institutionId }: Parameters<EarlierMessage['describe']>[0],
) {
  const { id, services } = JSON.parse(payload.toString())
  const { institutionId: named } =
    services.find((service: { id?: unknown }) => service.id === livestreamId) ?? {}
  const details = { event: name, livestreamId, institutionId: institutionId ?? named }
  return { messageId: String(id), details }
}
