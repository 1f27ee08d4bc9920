/**
 * Maximum number of items and bytes of one commit. A larger change is split into several commits, because the next
 * commits would have to wait for a long one.
 */
const batchLimits = { items: 500, bytes: 1024 * 1024 }

/**
 * Calls `read` for each element of `all`, one after another. `read` finds a payload, or a message with its payload.
 * Yields the results in portions, each small enough for one commit.
 */
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
