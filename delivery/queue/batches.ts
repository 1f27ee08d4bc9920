/** Limits of one commit that changes many items of a queue, because other commits wait for it. */
const most = { items: 500, bytes: 1024 * 1024 }

/** Reads payloads, or messages with their payloads, and yields as many at a time as one commit takes. */
export async function* inBatches<Of, Found extends Buffer | { payload: Buffer }>(
  all: readonly Of[],
  read: (of: Of) => Promise<Found | undefined>,
): AsyncGenerator<readonly [of: Of, found: Found | undefined][]> {
  let portion: [Of, Found | undefined][] = []
  let bytes = 0
  for (const of of all) {
    const found = await read(of)
    portion.push([of, found])
    bytes += payloadOf(found)?.length ?? 0
    if (portion.length < most.items && bytes < most.bytes) continue
    yield portion
    portion = []
    bytes = 0
  }
  if (portion.length > 0) yield portion
}

function payloadOf(found: Buffer | { payload: Buffer } | undefined): Buffer | undefined {
  return found && 'payload' in found ? found.payload : found
}
