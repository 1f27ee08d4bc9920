/** What one commit changes of a long queue: others wait for it. */
const portion = { items: 500, bytes: 1024 * 1024 }

/** Reads payloads, as many as one commit takes. */
export async function* inPortions<Of>(
  all: readonly Of[],
  read: (of: Of) => Promise<Buffer | undefined>,
): AsyncGenerator<readonly [of: Of, payload: Buffer | undefined][]> {
  let payloads: [Of, Buffer | undefined][] = []
  let bytes = 0
  for (const of of all) {
    const payload = await read(of)
    payloads.push([of, payload])
    bytes += payload?.length ?? 0
    if (payloads.length < portion.items && bytes < portion.bytes) continue
    yield payloads
    payloads = []
    bytes = 0
  }
  if (payloads.length > 0) yield payloads
}
