import { eventKinds } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import type { RetainedMessages } from '../journal/retained.ts'
import type { RetainedValue } from '../journal/retained-value.ts'
import { ownBytes } from '../store/own-bytes.ts'
import { eventOf } from './event-stream.ts'
import type { createNow } from './now.ts'
import type { Moment, Parts } from './parts.ts'
import type { View } from './view.ts'

export type State = ReturnType<typeof createState>

/** What a livestream shows, as text of a stream, to those who may read all. */
interface Made {
  /** The retained events from which it was made. Together with the time they say all. */
  values: readonly RetainedValue[]
  /** When it was made, and until when it is the same, milliseconds since the epoch. */
  from: number
  until: number
  bytes: Buffer
}

/** Texts with so many bytes are kept. */
const usualMostBytes = 32 * 1024 * 1024

/**
 * Tells a reader who begins what a livestream shows: its newest events, and those that are announced for later. Most of
 * it is the same for the next reader, and a stream may be of 50,000 livestreams.
 */
export function createState({
  retained,
  parts,
  now,
  mostBytes = usualMostBytes,
}: {
  retained: Pick<RetainedMessages, 'storedValues'>
  parts: Pick<Parts, 'ahead'>
  now: Pick<ReturnType<typeof createNow>, 'events'>
  mostBytes?: number
}) {
  /** By livestream, the oldest first. */
  const kept = new Map<string, Made>()
  let bytes = 0

  return {
    /** As text of a stream. Empty: nothing is shown. */
    async of(id: string, view: View, moment: Moment): Promise<Buffer> {
      const values = eventKinds.flatMap((kind) => retained.storedValues(radioTopic(id, kind)))
      // What was retained before those that are ahead is known to the journal alone.
      const isOfNow = values.every(({ position, time }) => position <= moment.position && time <= moment.now)
      if (!view.isWhole || !isOfNow) return make(id, view, moment)
      if (values.length === 0) return empty
      const known = kept.get(id)
      if (known && isStill(known, values, moment)) return known.bytes
      const made = ownBytes(await make(id, view, moment))
      const ends = values.map(({ expires = Infinity }) => expires).filter((end) => end > moment.now)
      keep(id, { values, from: moment.now, until: Math.min(...ends), bytes: made })
      return made
    },
  }

  async function make(id: string, view: View, moment: Moment): Promise<Buffer> {
    const shown = await now.events(id, view, moment)
    const ahead = (await parts.ahead(id, moment)).filter(({ topic }) => view.allows(topic))
    return Buffer.concat([...shown, ...ahead].map((value) => eventOf(value, { isRetained: true })))
  }

  function keep(id: string, made: Made): void {
    drop(id)
    kept.set(id, made)
    bytes += made.bytes.length
    for (const oldest of kept.keys()) {
      if (bytes <= mostBytes) return
      drop(oldest)
    }
  }

  function drop(id: string): void {
    bytes -= kept.get(id)?.bytes.length ?? 0
    kept.delete(id)
  }
}

function isStill({ values, from, until }: Made, present: readonly RetainedValue[], { now }: Moment): boolean {
  if (now < from || now >= until || values.length !== present.length) return false
  return values.every((value, nth) => value === present[nth])
}

const empty = Buffer.alloc(0)
