import type { Qos } from '../connection/wire.ts'

/** A message that a persistent session gets, and has not acknowledged. */
export interface Owed {
  readonly position: number
  readonly qos: Qos
  /** It is a retained value that the client got because it subscribed. */
  readonly retain: boolean
  /** It may have been sent before. */
  readonly dup: boolean
  /** The session would get the value even without the SUBSCRIBE that asked for it. Other values are dropped first. */
  readonly isChosen?: boolean
  /** QoS 2: it lies in the store by itself (`outgoing-qos2.ts`). */
  stored?: boolean
  /** QoS 2: acknowledged by PUBREC, the PUBREL is under way. */
  released?: boolean
}

/** A message sent to a client. For a clean session this is only the step that the message has reached. */
export type Flight = Owed | 'qos1' | 'qos2' | 'released'

/** Identifiers of packets are 1 to this [MQTT-2.3.1-1]. */
const lastId = 65_535

/**
 * Messages sent to one client and not finished, by packet identifier.
 *
 * Nearly all are QoS 1 messages to clean sessions: their identifiers form a row, and clients acknowledge them in order
 * [MQTT-4.6.0-2]. The first identifier and a count say as much as a map, which each of thousands of clients would fill
 * and empty at every event. Only messages outside the row go to a map.
 */
export class InFlight {
  #first = 0
  #count = 0
  #others: Map<number, Flight> | undefined
  #waiting: { count: number; resolve: () => void } | undefined

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
    // This message ends out of order: the messages before it move from the row to the map.
    while (this.#first !== id) {
      this.#others ??= new Map()
      this.#others.set(this.#first, 'qos1')
      this.#shift()
    }
    this.#shift()
  }

  /** Ends the first message of the row, cheaply: the usual acknowledgement. False: this identifier is not the first. */
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

  /** Resolves when at most `count` are left, or at `letGo`: then the caller checks whether it must still wait. */
  fallsTo(count: number): Promise<void> {
    this.letGo()
    return new Promise((resolve) => {
      this.#waiting = { count, resolve }
      this.#shrunk()
    })
  }

  /** Ends a wait: the connection is closed, or another caller has begun to wait. */
  letGo(): void {
    this.#waiting?.resolve()
    this.#waiting = undefined
  }

  /** The messages in flight of a persistent session. */
  *owed(): Generator<Owed> {
    for (const flight of this.#others?.values() ?? []) if (typeof flight === 'object') yield flight
  }

  #continues(id: number): boolean {
    return this.#count === 0 || (id === after(this.#first, this.#count) && this.#count < lastId)
  }

  #isInRow(id: number): boolean {
    return this.#count > 0 && (id - this.#first + lastId) % lastId < this.#count
  }

  #shift(): void {
    this.#first = after(this.#first, 1)
    this.#count--
    if (this.#waiting) this.#shrunk()
  }

  #shrunk(): void {
    if (this.#waiting && this.size <= this.#waiting.count) this.letGo()
  }
}

function after(id: number, steps: number): number {
  return ((id - 1 + steps) % lastId) + 1
}
