import { FrameReader } from '../../../broker/connection/frames.ts'
import { createHalfReceived } from '../../../listener/half-received.ts'

/** Reads the packets of one connection alone, without a bound for their pieces. */
export function createFrameReader(maxBytes: number, maxFilters = Infinity): FrameReader {
  const room = createHalfReceived(Infinity, Infinity)
  return new FrameReader(
    () => maxBytes,
    () => room.collect(() => {}),
    maxFilters,
  )
}
