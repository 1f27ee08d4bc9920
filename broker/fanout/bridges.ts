import { setImmediate as nextTurn } from 'node:timers/promises'
import { filterMatches } from '../../event/topic.ts'
import type { RetainedMessages } from '../../journal/retained.ts'
import { type PublishFlags, preparePublish } from '../connection/frames.ts'
import type { Access } from '../login/access.ts'
import type { Session } from '../session/session.ts'

export type Bridges = ReturnType<typeof createBridges>

/** Time between two looks for values that have expired, milliseconds. */
const lookMs = 500
/** This many topics are looked at in one turn of the event loop. */
const looksPerTurn = 1_000
/** This many messages are sent in one turn of the event loop: the time of thousands of values may end at once. */
const burst = 50

/**
 * Tells bridges what is retained: docs/decisions, "To a bridge, RETAIN says what is retained". A bridge hands RETAIN on
 * as it came. A live message therefore has RETAIN 1 if it became the retained value. When a value changes without a
 * message, the bridge is sent the new value, or an empty message if there is none.
 */
export function createBridges(parts: {
  retained: RetainedMessages
  mayReceive: Access['mayReceive']
  /** Resolves when the live messages that are on their way now are sent. */
  sent: () => Promise<void>
}) {
  const { retained, mayReceive, sent } = parts
  const here = new Set<Session>()
  /** Positions of the values that bridges know, for topics with values that will expire. 0: no value. */
  const known = new Map<string, number>()
  /** Topics whose value may have changed without a message. */
  const changed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  retained.onSilentChange((topic) => {
    if (here.size > 0) hasChanged(topic)
  })

  return {
    start(): void {
      timer = setInterval(() => void look(), lookMs).unref()
    },
    stop: (): void => clearInterval(timer),

    /** Adds a session, which knows all values of now: its SUBSCRIBE brings them. */
    enter(session: Session): void {
      if (here.size === 0) for (const topic of retained.expiring) known.set(topic, positionNow(topic))
      here.add(session)
    },
    leave(session: Session): void {
      here.delete(session)
      if (here.size === 0) known.clear()
    },

    /** The flags of a live message to bridges: RETAIN if it has become the retained value. They know the value then. */
    flagsOf(topic: string, position: number): PublishFlags {
      if (here.size === 0 || position === 0) return {}
      const retain = positionNow(topic) === position
      if (retain && retained.expiring.has(topic)) known.set(topic, position)
      return { retain }
    },

    send,
  }

  function positionNow(topic: string): number {
    return retained.current(topic)?.position ?? 0
  }

  /** Finds the values whose time is over. */
  async function look(): Promise<void> {
    if (here.size === 0) return
    let looks = 0
    for (const topic of new Set([...retained.expiring, ...known.keys()])) {
      const position = known.get(topic)
      if (position === undefined) known.set(topic, positionNow(topic))
      else if (position !== positionNow(topic)) hasChanged(topic)
      if (++looks % looksPerTurn === 0) await nextTurn()
    }
  }

  function hasChanged(topic: string): void {
    if (changed.size === 0) setImmediate(() => void tellAll())
    changed.add(topic)
  }

  async function tellAll(): Promise<void> {
    // An older live message must not come behind the value that is sent here.
    await sent()
    const topics = [...changed]
    changed.clear()
    let sends = 0
    for (const topic of topics) {
      const position = positionNow(topic)
      if (known.get(topic) === position) continue
      if (retained.expiring.has(topic)) known.set(topic, position)
      else known.delete(topic)
      for (const session of here) {
        send(session, topic)
        if (++sends % burst === 0) await nextTurn()
      }
    }
  }

  /**
   * Sends a bridge the retained value of a topic, or an empty message, at QoS 0: if it is lost with the connection, the
   * SUBSCRIBE of the next connection brings it.
   */
  function send(session: Session, topic: string): void {
    const { connection, principal, subscriptions } = session
    if (!connection?.isOpen || !mayReceive(principal, topic)) return
    if (![...subscriptions.keys()].some((filter) => filterMatches(filter, topic))) return
    const payload = retained.current(topic)?.payload ?? Buffer.alloc(0)
    // Cuts off a bridge that does not read: it must not miss this message.
    connection.send(preparePublish({ topic, payload }).packet(0, { retain: true }))
  }
}
