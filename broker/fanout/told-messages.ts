import type { Message } from '../../event/message.ts'
import { decodeRecord, encodeRecord } from '../queue/record.ts'

/** What another node needs to deliver messages to the clients it has. */
export type ToldMessage = Pick<Message, 'topic' | 'payload' | 'qos'>

interface Header {
  /** Each with the place of its payload; messages of one event share it. */
  messages: { topic: string; qos: 0 | 1 | 2; from: number; to: number }[]
}

/** Messages as one run of bytes; a payload that several share is in it once. */
export function encodeMessages(messages: readonly ToldMessage[]): Buffer {
  const places = new Map<Buffer, number>()
  let end = 0
  for (const { payload } of messages) {
    if (places.has(payload)) continue
    places.set(payload, end)
    end += payload.length
  }
  const header: Header = {
    messages: messages.map(({ topic, qos, payload }) => {
      const from = places.get(payload) ?? 0
      return { topic, qos, from, to: from + payload.length }
    }),
  }
  return encodeRecord(header, Buffer.concat([...places.keys()]))
}

export function decodeMessages(value: Buffer): ToldMessage[] {
  const { header, payload } = decodeRecord<Header>(value)
  return header.messages.map(({ topic, qos, from, to }) => ({
    topic,
    qos,
    payload: payload.subarray(from, to),
  }))
}
