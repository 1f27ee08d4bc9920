import type { Qos } from '../connection/protocol.ts'

/** A message that a persistent session still has to get or to acknowledge. */
export interface Owed {
  readonly position: number
  readonly qos: Qos
  /** The message is a retained value that the client gets because of a SUBSCRIBE. */
  readonly retain: boolean
  /** True: the message may have been sent before. The node then sends it with DUP. */
  readonly dup: boolean
  /** The topic of a retained value that a SUBSCRIBE has brought on this connection. */
  readonly topic?: string
  /** QoS 2: the store has a separate entry for the message (`outgoing-qos2.ts`). */
  stored?: boolean
  /** QoS 2: the client has sent PUBREC, and not yet PUBCOMP. */
  released?: boolean
}

/**
 * A message in flight. For a clean session, it is only a word, which names the packet that must come next: `qos1`
 * PUBACK, `qos2` PUBREC, `released` PUBCOMP.
 */
export type Flight = Owed | 'qos1' | 'qos2' | 'released'

/** The highest packet identifier. The lowest is 1 [MQTT-2.3.1-1]. */
const lastId = 65_535

/**
 * The messages in flight to one client, by packet identifier.
 *
 * Clean sessions acknowledge QoS 1 messages in order [MQTT-4.6.0-2]: the identifiers form a row (7, 8, 9, …), kept as a
 * start and a length. Messages outside the row are in a map. With maps alone, each event would fill and empty thousands
 * of them.
 */
export class InFlight {
  #first = 0
  #count = 0
  #others: Map<number, Flight> | undefined
  #waiting: WaitingPacket | undefined

  get size(): number {
    return this.#count + (this.#others?.size ?? 0)
  }

  get(id: number): Flight | undefined {
    return this.#isInRow(id) ? 'qos1' : this.#others?.get(id)
  }

  has(id: number): boolean {
    return this.#isInRow(id) || (this.#others?.has(id) ?? false)
  }

  set(id: number, flight: Flight): void {
    if (this.#isInRow(id)) this.delete(id)
    if (flight === 'qos1' && !this.has(id) && this.#continues(id)) {
      if (this.#count === 0) this.#first = id
      this.#count++
      return
    }
    this.#others ??= new Map()
    this.#others.set(id, flight)
  }

  delete(id: number): void {
    if (!this.#isInRow(id)) {
      this.#others?.delete(id)
      this.#shrunk()
      return
    }
    // Out of order: the messages before this one move to the map.
    while (this.#first !== id) {
      this.#others ??= new Map()
      this.#others.set(this.#first, 'qos1')
      this.#shift()
    }
    this.#shift()
  }

  /**
   * Removes the message `id` if it is the first of the row. False: the row is empty, or begins with another message.
   */
  endFirst(id: number): boolean {
    if (this.#count === 0 || this.#first !== id) return false
    this.#shift()
    return true
  }

  clear(): void {
    this.#count = 0
    this.#others = undefined
    this.#shrunk()
  }

  /**
   * Resolves with true when at most `count` messages are in flight. False: `endWait` or a later wait has ended this
   * one. Calls `silent` after each `silentMs` in which no message has ended.
   */
  fallsTo(count: number, silentMs: number, silent: () => void): Promise<boolean> {
    this.endWait()
    if (this.size <= count) return Promise.resolve(true)
    return new Promise((resolve) => {
      const look = () => {
        if (!waiting.hasShrunk) silent()
        waiting.hasShrunk = false
      }
      const timer = setInterval(look, silentMs).unref()
      const waiting: WaitingPacket = { count, resolve, timer, hasShrunk: false }
      this.#waiting = waiting
    })
  }

  /** Ends the wait in `fallsTo`, for example when the connection is closed. */
  endWait(): void {
    this.#endWait(false)
  }

  #endWait(hasFallen: boolean): void {
    clearInterval(this.#waiting?.timer)
    this.#waiting?.resolve(hasFallen)
    this.#waiting = undefined
  }

  /** The messages in flight of a persistent session. */
  *owed(): Generator<Owed> {
    for (const flight of this.#others?.values() ?? []) if (typeof flight === 'object') yield flight
  }

  #continues(id: number): boolean {
    return this.#count === 0 || id === after(this.#first, this.#count)
  }

  #isInRow(id: number): boolean {
    return this.#count > 0 && (id - this.#first + lastId) % lastId < this.#count
  }

  #shift(): void {
    this.#first = after(this.#first, 1)
    this.#count--
    this.#shrunk()
  }

  #shrunk(): void {
    if (!this.#waiting) return
    this.#waiting.hasShrunk = true
    if (this.size <= this.#waiting.count) this.#endWait(true)
  }
}

/** A caller of `fallsTo`. `hasShrunk`: a message has ended since the last look. */
interface WaitingPacket {
  readonly count: number
  readonly resolve: (hasFallen: boolean) => void
  readonly timer: NodeJS.Timeout
  hasShrunk: boolean
}

function after(id: number, steps: number): number {
  return ((id - 1 + steps) % lastId) + 1
}
