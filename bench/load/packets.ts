/** The MQTT packets of load generators, made with little work. */

export interface Login {
  username: string
  password: string
}

export function connectPacket(clientId: string, clean: boolean, login: Login | undefined): Buffer {
  const flags = (clean ? 2 : 0) | (login ? 0xc0 : 0)
  const body = [Buffer.from([0, 4, ...Buffer.from('MQTT'), 4, flags, 0, 0]), text(clientId)]
  if (login) body.push(text(login.username), text(login.password))
  return packet(0x10, body)
}

export function subscribePacket(packetId: number, filter: string, qos: number): Buffer {
  return packet(0x82, [Buffer.of(packetId >> 8, packetId & 0xff), text(filter), Buffer.of(qos)])
}

/** A PUBLISH of QoS 1. */
export function publishPacket(topic: string, packetId: number, payload: Buffer): Buffer {
  return packet(0x32, [text(topic), Buffer.of(packetId >> 8, packetId & 0xff), payload])
}

export const disconnectPacket = Buffer.of(0xe0, 0)

function packet(header: number, parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const length: number[] = []
  for (let rest = body.length; length.length === 0 || rest > 0; rest = Math.floor(rest / 128)) {
    length.push(rest >= 128 ? (rest % 128) | 128 : rest)
  }
  return Buffer.concat([Buffer.of(header, ...length), body])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes])
}

/** Called with each packet. In `bytes` its fixed header begins at `start`, and the rest goes from `body` to `end`. */
export type OnPacket = (bytes: Buffer, start: number, body: number, end: number) => void

/** Returns a function that finds the packets in the chunks of a stream. The caller can overwrite a chunk afterwards. */
export function createPacketCutter(onPacket: OnPacket) {
  let rest: Buffer | undefined
  return (chunk: Buffer, length: number): void => {
    const bytes = rest ? Buffer.concat([rest, chunk.subarray(0, length)]) : chunk
    const total = rest ? bytes.length : length
    let start = 0
    while (start < total) {
      let remaining = 0
      let body = start + 1
      let shift = 0
      let byte = 128
      while (byte >= 128 && body < total) {
        byte = bytes[body++] ?? 0
        remaining += (byte & 127) << shift
        shift += 7
      }
      const end = body + remaining
      if (byte >= 128 || end > total) break
      onPacket(bytes, start, body, end)
      start = end
    }
    rest = start < total ? Buffer.from(bytes.subarray(start, total)) : undefined
  }
}
