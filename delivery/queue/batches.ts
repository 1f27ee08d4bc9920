/**
 * A commit with this many items or bytes of payload gets no further items. Other commits would wait too long for a
 * larger commit.
 */
const batchLimits = { items: 500, bytes: 1024 * 1024 }

/** Calls `read` for one element of `all` after another. Yields the results in portions for one commit each. */
export async function* inBatches<Of, Found extends Buffer | { payload: Buffer }>(
  all: readonly Of[],
  read: (of: Of) => Promise<Found | undefined>,
): AsyncGenerator<readonly [of: Of, found: Found | undefined][]> {
  let batch: [Of, Found | undefined][] = []
  let bytes = 0
  for (const of of all) {
    const found = await read(of)
    batch.push([of, found])
    bytes += payloadOf(found)?.length ?? 0
    if (batch.length < batchLimits.items && bytes < batchLimits.bytes) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
}

function payloadOf(found: Buffer | { payload: Buffer } | undefined): Buffer | undefined {
  return found && 'payload' in found ? found.payload : found
}
