import type { Details } from '../queue/work-item.ts'

/** The body of a push: the wire format that receivers know (service.md §6.2). */
export function pushBody(push: {
  data: Buffer
  attributes: Details
  messageId: string
  /** When the hub accepted the event, milliseconds since the epoch. */
  publishedAt: number
  subscription: string
}): Buffer {
  const { data, attributes, messageId, publishedAt, subscription } = push
  return Buffer.from(
    JSON.stringify({
      message: {
        data: data.toString('base64'),
        attributes,
        messageId,
        publishTime: new Date(publishedAt).toISOString(),
      },
      subscription,
    }),
  )
}
