import type { ConnectionEvents } from './connection-events.ts'
import { countFilters, type Frame, type PublishFrame, readPublish, readPublishHead } from './frames.ts'

type Entrance = Pick<ConnectionEvents, 'hold' | 'publishes' | 'publishing' | 'requesting'>

/**
 * The packet of a connection that waits for its turn, or for the publish rate. There is at most one: nothing behind it
 * is read, so that further packets wait in the network (design.md §8). Its bytes count while it waits.
 */
export function createWaitingPacket(
  entrance: Entrance,
  connection: {
    /** The packet may go on, when `take` is called. The answer tells whether the connection is still open. */
    resume(waitedFor: 'turn' | 'rate'): boolean
    /** The packet has to give way to those of others. */
    end(): void
    /** Bytes of memory that stay while a part of a packet is kept. */
    memoryOf(part: Buffer): number
  },
) {
  let waiting: { take: () => void; free: () => void } | undefined

  return {
    isThere: () => waiting !== undefined,

    /** Takes a PUBLISH, now or later. */
    publish(frame: Frame, take: (publish: PublishFrame) => void): void {
      // A client that may never publish is not to fill memory by publishing.
      const publish = entrance.publishes() ? readPublish(frame) : readPublishHead(frame)
      const bytes = publish.topic.length + publish.payload.length
      if (entrance.publishing(bytes, connection.resume)) take(publish)
      else wait(publish.payload, () => take(publish))
    },

    /** Takes a SUBSCRIBE or UNSUBSCRIBE, now or later. */
    request(frame: Frame, take: () => void): void {
      if (entrance.requesting(countFilters(frame), connection.resume)) take()
      else wait(frame.bytes, take)
    },

    /** Takes the packet that waited. */
    take(): void {
      const take = waiting?.take
      letGo()
      take?.()
    },

    letGo,
  }

  function wait(kept: Buffer, take: () => void): void {
    const { grow, free } = entrance.hold(connection.end)
    waiting = { take, free }
    grow(connection.memoryOf(kept))
  }

  function letGo(): void {
    waiting?.free()
    waiting = undefined
  }
}
