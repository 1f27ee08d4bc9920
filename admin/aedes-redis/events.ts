import { isRecord } from '../../event/json.ts'
import { slotOf } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import type { RetainedMessages } from '../../journal/retained.ts'
import type { Slot } from '../../journal/retained-value.ts'
import { keyOf, orderAt } from '../../journal/retained-values.ts'
import { keepsStored } from '../../store/commit.ts'
import { type Decision, parsePayload, type Submission } from '../../validator/decide.ts'
import type { Feed } from '../../validator/feed/feed.ts'
import type { Pipeline } from '../../validator/pipeline.ts'
import { LeftOut } from './left-out.ts'

/**
 * Maximum number of slots (`slotsOf`) whose event times are kept. Beyond that, an older event may be imported before a
 * newer one.
 */
const maxPlaces = 200_000

/** Further conditions for the import of an event. */
interface WantedEvent {
  /** The event must be a control state, as sessions get every one: the import takes nothing else from their queues. */
  isControl?: boolean
  /** This check must hold for at least one topic of the event. */
  topic?: (topic: string) => boolean
}

/**
 * Publishes events of another broker through the pipeline, if they are newer than those of the hub. Publishers get no
 * report: the operator sends these events.
 */
export function createEventImport(parts: {
  feed: () => Feed | undefined
  pipeline: Pick<Pipeline, 'decide' | 'publish'>
  retained: Pick<RetainedMessages, 'at'>
  now: () => number
  isDry: boolean
}) {
  const { feed, pipeline, retained, now, isDry } = parts
  /** The newest event time that `look` saw, by slot. */
  const seen = new Map<string, number>()
  /** The event time that a dry run would have stored, by slot. */
  const foreseen = new Map<string, number>()

  return {
    /** Notes the event time, so that `take` publishes only the newest event of each slot. */
    look(payload: Buffer): void {
      const decision = pipeline.decide(submissionOf(payload))
      if (decision.outcome !== 'published') return
      for (const slot of slotsOf(decision)) {
        const key = keyOf(slot)
        const before = seen.get(key)
        if (before === undefined ? seen.size < maxPlaces : before < decision.time)
          seen.set(key, decision.time)
      }
    },

    /**
     * Publishes an event. A dry run only notes the event time. Resolves with `here` if the hub already has an event of
     * this event time in each slot. Rejects with `LeftOut` if the event is not imported.
     */
    async take(
      payload: Buffer,
      { isControl = false, topic }: WantedEvent = {},
    ): Promise<'published' | 'here'> {
      const submission = submissionOf(payload)
      const decision = pipeline.decide(submission)
      if (decision.outcome !== 'published') {
        const [error] = decision.errors
        throw new LeftOut(error?.errorCode ?? 'unreadable', `${error?.path} ${error?.message}`)
      }
      const { kind, time } = decision
      if (isControl && kind.keep !== 'every') {
        throw new LeftOut('not-control', `${kind.name}: only control states are taken from queues`)
      }
      const slots = slotsOf(decision)
      if (topic && !slots.some((slot) => topic(slot.topic))) {
        throw new LeftOut('not-subscribed', 'the session has no filter for its livestreams here')
      }
      if (slots.every((slot) => timeHere(slot) === time)) return 'here'
      if (slots.every((slot) => isOver(slot, time))) {
        throw new LeftOut('older', 'there is one of a later event time')
      }
      if (isDry) foresee(slots, time)
      else {
        const arrival = { at: now(), started: performance.now(), clientId: null }
        const { outcome } = await pipeline.publish(submission, arrival)
        if (outcome !== 'published') throw new Error('the store did not take an event')
      }
      return 'published'
    },
  }

  function submissionOf(payload: Buffer): Submission {
    return { payload, institutionId: institutionOf(payload), allowedClasses: [], reportTo: [] }
  }

  /**
   * The institution of the event's first livestream. The pipeline then checks all livestreams against this institution.
   */
  function institutionOf(payload: Buffer): string {
    const parsed = parsePayload(payload)
    const { services } = 'value' in parsed && isRecord(parsed.value) ? parsed.value : {}
    const [service] = Array.isArray(services) ? services : []
    const { id, externalId } = isRecord(service) ? service : {}
    const known = typeof id === 'string' ? feed()?.byId.get(id) : undefined
    const [named] = typeof externalId === 'string' ? (feed()?.byExternalId.get(externalId) ?? []) : []
    return (known ?? named)?.institution.id ?? ''
  }

  /** Whether an event of this time comes too late for the slot. */
  function isOver(slot: Slot, time: number): boolean {
    const incoming = orderAt(time, now())
    const here = timeHere(slot)
    const others = [here, seen.get(keyOf(slot))]
    return here === time || others.some((other) => other !== undefined && keepsStored(other, incoming))
  }

  function timeHere(slot: Slot): number | undefined {
    return foreseen.get(keyOf(slot)) ?? retained.at(slot.topic, slot.slot)?.time
  }

  function foresee(slots: readonly Slot[], time: number): void {
    if (foreseen.size >= maxPlaces) foreseen.clear()
    for (const slot of slots) foreseen.set(keyOf(slot), time)
  }
}

/** The slots (places of retained values) of an event, one per livestream. Control states have one slot per name. */
function slotsOf({ event, kind, livestreams }: Extract<Decision, { outcome: 'published' }>): Slot[] {
  const slot = slotOf(event, kind)
  return livestreams.map(({ id }) => ({ topic: radioTopic(id, kind), slot }))
}
