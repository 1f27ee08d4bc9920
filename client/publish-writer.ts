const encoder = new TextEncoder()
/** Packets share pages: memory and a write of its own for each would cost more than to encode it. */
const pageBytes = 64 * 1024
/** The longest fixed header: the type, and a length of four bytes. */
const longestHead = 5

/**
 * Returns a function that writes a PUBLISH at QoS 1, not retained (MQTT 3.1.1 §3.3). All of a turn of the event loop leave
 * together, as the fewest pieces.
 */
export function publishWriter(write: (bytes: Uint8Array) => void) {
  let page = new Uint8Array()
  let written = 0
  let used = 0

  function flush(): void {
    if (written < used) write(page.subarray(written, used))
    written = used
  }

  function put(text: string, at: number): number {
    return at + encoder.encodeInto(text, page.subarray(at)).written
  }

  return (topic: string, payload: string, packetId: number): void => {
    // A character has at most three bytes.
    const most = longestHead + 4 + 3 * (topic.length + payload.length)
    if (used + most > page.length) {
      flush()
      page = new Uint8Array(Math.max(pageBytes, most))
      written = used = 0
    }
    if (written === used) queueMicrotask(flush)
    const body = used + longestHead
    const id = put(topic, body + 2)
    page.set([(id - body - 2) >> 8, id - body - 2], body)
    page.set([packetId >> 8, packetId], id)
    const end = put(payload, id + 2)
    // How long the head is follows from what stands behind it.
    page[used++] = 0x32
    let rest = end - body
    for (; rest > 0x7f; rest >>= 7) page[used++] = rest | 0x80
    page[used++] = rest
    page.copyWithin(used, body, end)
    used += end - body
  }
}
