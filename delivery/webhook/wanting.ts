import type { EventKind } from '../../event/kind.ts'
import { coversKind, coversType } from './selected.ts'
import type { PushSubscription } from './subscription.ts'
import type { PushSubscriptions } from './subscriptions.ts'

/** The webhooks that get an event of a livestream. */
export interface Wanting {
  /** Those that name no other livestream. The list is the same object as long as the subscriptions stay. */
  alone: readonly string[]
  /** One of them. */
  example: PushSubscription | undefined
  /** Whether one of them asks when the event is over. */
  isJudged: boolean
  /** Those that name several livestreams. */
  several: readonly PushSubscription[]
}

/** So many answers are kept: livestreams and types of tracks are many, and most have no events at a time. */
const mostKept = 10_000

/**
 * Returns a function that finds the webhooks of an event. It keeps its answers until a subscription comes or goes: a
 * livestream may have thousands, and a subscription selects the same for as long as it lives.
 */
export function createWanting(subscriptions: Pick<PushSubscriptions, 'topics' | 'ofTopic'>) {
  const kept = new Map<string, Wanting>()
  let version = -1

  /** `isLeftOut`: webhooks that do not get this event. */
  return (
    livestreamId: string,
    kind: EventKind,
    event: object,
    isLeftOut?: (one: PushSubscription) => boolean,
  ): Wanting => {
    const ofEvent = () =>
      subscriptions
        .ofTopic(livestreamId)
        .filter((one) => coversKind(one, kind) && coversType(one, kind, event))
    if (isLeftOut) return wantingOf(ofEvent().filter((one) => !isLeftOut(one)))
    if (version !== subscriptions.topics.version() || kept.size >= mostKept) kept.clear()
    version = subscriptions.topics.version()
    const type = 'type' in event ? String(event.type) : ''
    const key = `${livestreamId}\n${kind.name}\n${type}`
    const found = kept.get(key) ?? wantingOf(ofEvent())
    kept.set(key, found)
    return found
  }
}

function wantingOf(all: readonly PushSubscription[]): Wanting {
  const alone = all.filter(({ livestreams }) => livestreams === undefined)
  return {
    alone: alone.map(({ name }) => name),
    example: alone[0],
    isJudged: alone.some(({ maxAge }) => maxAge === 'element'),
    several: all.filter(({ livestreams }) => livestreams !== undefined),
  }
}
