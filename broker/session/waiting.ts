import type { Owed } from './in-flight.ts'

/**
 * The messages that wait for a session, in order of sending. A SUBSCRIBE can bring 100,000: an array would move all of
 * them at each `shift`.
 */
export class Waiting {
  #all: readonly Owed[]
  #sent = 0

  constructor(all: readonly Owed[] = []) {
    this.#all = all
  }

  get length(): number {
    return this.#all.length - this.#sent
  }

  get first(): Owed | undefined {
    return this.#all[this.#sent]
  }

  /** Removes the first message. */
  shift(): void {
    this.#sent++
    // So often that the memory of sent messages is free again, so seldom that it costs nothing.
    if (this.#sent < this.#all.length / 2) return
    this.#all = this.#all.slice(this.#sent)
    this.#sent = 0
  }

  /** The first messages, by default all. */
  list(most = Infinity): Owed[] {
    return this.#all.slice(this.#sent, this.#sent + most)
  }
}
