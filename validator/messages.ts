import type { EventKind } from '../event/kind.ts'
import type { Message } from '../event/message.ts'
import type { HubEvent } from '../event/schema.ts'
import { radioTopic } from '../event/topic.ts'

/**
 * Makes the messages of the radio tree for an accepted event: one per livestream, all with the same payload. They carry
 * the rules of their event class for retained values and for returning sessions (service.md §6.3, design.md §7).
 */
export function radioMessages(
  event: HubEvent,
  /** The event as JSON. */
  payload: Buffer,
  shape: {
    kind: EventKind
    /** Event time, milliseconds since the epoch. */
    time: number
    /** End of a control state, milliseconds since the epoch. */
    expires?: number
  },
  of: {
    /** The institution that publishes the event. */
    institutionId: string
    livestreamIds: readonly string[]
    now: number
  },
): Message[] {
  const { institutionId, livestreamIds, now } = of
  const { retained, queue } = rulesOf(event, shape, now)
  return livestreamIds.map((stream) => {
    const topic = radioTopic(stream, shape.kind)
    return { topic, stream, institutionId, payload, qos: 1, retained, queue }
  })
}

function rulesOf(
  event: HubEvent,
  { kind, time, expires }: Parameters<typeof radioMessages>[2],
  now: number,
): Required<Pick<Message, 'retained' | 'queue'>> {
  const until = expires === undefined ? {} : { expires }
  switch (kind.class) {
    case 'track':
      return { retained: { slot: '', time }, queue: { keep: 'latest', time } }
    case 'control': {
      const slot = 'name' in event ? event.name : ''
      return { retained: { slot, time, ...until }, queue: { keep: 'every', time, ...until } }
    }
    case 'data': {
      const cycle = 'cycle' in event ? event.cycle : 0
      return { retained: { slot: '', time }, queue: { keep: 'latest', time, expires: now + cycle * 1000 } }
    }
  }
}
