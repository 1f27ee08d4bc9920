import { playing } from '../../test/events.ts'
import type { Attack, Target } from './attack.ts'
import { floodEvents } from './flood-events.ts'

/** Size of each event, bytes: just below the largest payload that a node takes. */
const payloadBytes = 400_000

/** Events with as many invalid services as fit into the payload: `services: [{},{},…]`. */
export const emptyServices: Attack = floodEvents((target) => [
  filled(target, (count) => ({ services: Array.from({ length: count }, () => ({})) }), '{},'.length),
])

/** Events with numbers in `alternateIds`, where only strings are valid. */
export const numbersAsIds: Attack = floodEvents((target) => [
  filled(
    target,
    (count) => {
      const reference = { type: 'Show', externalId: 'crid://bench.example/1' }
      return { references: [{ ...reference, alternateIds: Array.from({ length: count }, () => 1) }] }
    },
    '1,'.length,
  ),
])

/** Events with thousands of unknown properties. */
export const unknownProperties: Attack = floodEvents((target) => [
  filled(
    target,
    (count) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${100_000 + index}`, 1])),
    '"p100000":1,'.length,
  ),
])

function filled(
  { livestreams: [livestream] }: Target,
  fields: (count: number) => Record<string, unknown>,
  bytesEach: number,
): Buffer {
  if (!livestream) throw new Error('no livestream')
  return Buffer.from(
    JSON.stringify(playing(livestream, fields(Math.floor((payloadBytes - 1_000) / bytesEach)))),
  )
}
