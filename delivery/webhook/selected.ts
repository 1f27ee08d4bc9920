import { allLivestreams } from '../../event/delivery-fields.ts'
import { bareName, type EventKind } from '../../event/kind.ts'

/** Which events a webhook gets (deliveries.md, "Whom"). */
export interface Selected {
  /** The livestream of its topic. */
  topicId: string
  /** Further livestreams; `["*"]`: all. Absent: none. */
  livestreams?: readonly string[]
  /** The kinds by their bare names. Absent: tracks. */
  kinds?: readonly string[]
  /** The types of tracks. Absent: all. */
  types?: readonly string[]
}

/** Whether a webhook gets the events of all livestreams. */
export function isForAll({ livestreams = [] }: Selected): boolean {
  return livestreams.includes(allLivestreams)
}

/** The livestreams that a webhook names. */
export function named({ topicId, livestreams = [] }: Selected): string[] {
  return [...new Set([topicId, ...livestreams])].filter((id) => id !== allLivestreams)
}

export function coversLivestream(selected: Selected, livestreamId: string): boolean {
  return isForAll(selected) || named(selected).includes(livestreamId)
}

/** Whether a webhook gets events of a kind. */
export function coversKind({ kinds }: Selected, kind: EventKind): boolean {
  return kinds === undefined ? kind.isPushed : kinds.includes(bareName(kind))
}

/** Whether a webhook gets an event, by its type. Only tracks have one. */
export function coversType({ types }: Selected, kind: EventKind, event: object): boolean {
  if (types === undefined || kind.class !== 'track') return true
  const type: unknown = 'type' in event ? event.type : undefined
  return typeof type === 'string' && types.includes(type)
}

/**
 * The attributes of a push. A webhook that names one livestream gets its id only. Of several it gets the first, and all
 * of them as one text: receivers read attributes as texts.
 */
export function attributesOf(
  selected: Selected,
  about: { event: string; livestreamIds: readonly string[]; institutionId: string | undefined },
): Record<string, unknown> {
  const { event, livestreamIds, institutionId } = about
  const [livestreamId] = livestreamIds
  return {
    event,
    livestreamId,
    ...(selected.livestreams !== undefined && { livestreamIds: livestreamIds.join() }),
    institutionId,
  }
}
