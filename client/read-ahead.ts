import type { MqttClient } from 'mqtt'

/**
 * Reads messages of QoS 0 and PUBACKs ahead of mqtt.js, and emits its events `packetreceive` and `message`: it would take
 * each packet through a parser, a queue and a turn of the event loop of its own. It gets the bytes of all others as they
 * come: they may be no MQTT, and have no end.
 */
export function readAhead(client: MqttClient): void {
  const { stream } = client
  const readers = stream.listeners('data')
  stream.removeAllListeners('data')
  /** Bytes to come of a packet for mqtt.js. */
  let passing = 0
  /** The beginning of another packet, and how many bytes must follow before it is worth another look. */
  let parts: Buffer[] = []
  let missing = 0

  stream.on('data', (chunk: Buffer) => {
    parts.push(chunk)
    missing -= chunk.length
    if (missing > 0) return
    let bytes = parts.length > 1 ? Buffer.concat(parts) : chunk
    parts = []
    while (bytes.length > 0) {
      const head = bytes[0] ?? 0
      const { body, end } = passing > 0 ? { body: 0, end: passing } : sizeOf(bytes)
      const isOurs = passing === 0 && (head === puback || (head & 0xfe) === publish)
      missing = end - bytes.length
      if (missing > 0 && (isOurs || body > bytes.length)) return void parts.push(bytes)
      const packet = bytes.subarray(0, end)
      bytes = bytes.subarray(end)
      if (isOurs && emit(client, head, packet.subarray(body))) continue
      passing = Math.max(missing, 0)
      for (const reader of readers) reader.call(stream, packet)
    }
    missing = 0
  })
}

/** First byte of a PUBACK, and of a PUBLISH at QoS 0 but for the bit that says whether it is retained. */
const [puback, publish] = [0x40, 0x30]

/** Where the body of a packet begins and ends (MQTT 3.1.1 §2.2.3): at least there, while its length is not whole. */
function sizeOf(bytes: Buffer): { body: number; end: number } {
  let [body, length, digit] = [1, 0, 0]
  do {
    digit = bytes[body] ?? 0
    length |= (digit & 0x7f) << (7 * body - 7)
    body++
  } while (digit > 0x7f && body < 5)
  return { body, end: body + length }
}

/** Returns false for a packet that mqtt.js has to refuse. */
function emit(client: MqttClient, head: number, body: Buffer): boolean {
  if (body.length < 2) return false
  const { length } = body
  const number = body.readUInt16BE()
  if (head === puback) return client.emit('packetreceive', { cmd: 'puback', messageId: number, length })
  if (number + 2 > length) return false
  const topic = body.toString('utf8', 2, number + 2)
  const payload = body.subarray(number + 2)
  const packet = {
    cmd: 'publish',
    topic,
    payload,
    qos: 0,
    dup: false,
    retain: head > publish,
    length,
  } as const
  client.emit('packetreceive', packet)
  return client.emit('message', topic, payload, packet)
}
