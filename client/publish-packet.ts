const encoder = new TextEncoder()
/** Packets share pages: memory of its own for each would cost more than to write it. */
const pageBytes = 64 * 1024
/** The longest fixed header: the type, and a length of four bytes. */
const longestHead = 5
let page = new Uint8Array()
let used = 0

/** The bytes of a PUBLISH at QoS 1, not retained (MQTT 3.1.1 §3.3). */
export function publishPacket(topic: string, payload: string, packetId: number): Uint8Array {
  // A character has at most three bytes.
  const most = longestHead + 4 + 3 * (topic.length + payload.length)
  if (used + most > page.length) {
    page = new Uint8Array(Math.max(pageBytes, most))
    used = 0
  }
  const body = used + longestHead
  const id = write(topic, body + 2)
  page.set([(id - body - 2) >> 8, (id - body - 2) & 0xff], body)
  page.set([packetId >> 8, packetId & 0xff], id)
  used = write(payload, id + 2)
  const head = [0x32]
  let rest = used - body
  for (; rest > 0x7f; rest >>= 7) head.push((rest & 0x7f) | 0x80)
  head.push(rest)
  // How long the head is follows from what stands behind it.
  page.set(head, body - head.length)
  return page.subarray(body - head.length, used)
}

/** Returns where the text ends. */
const write = (text: string, at: number) => at + encoder.encodeInto(text, page.subarray(at)).written
