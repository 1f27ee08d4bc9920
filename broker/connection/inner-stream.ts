import { Duplex } from 'node:stream'
import { packetType } from './wire.ts'

/** The stream that Aedes has in place of the socket: what Aedes writes is sent to the client. */
export abstract class InnerStream extends Duplex {
  /** Shown in CONNACK [MQTT-3.2.2-2]. */
  sessionPresent = false
  #connackSeen = false

  constructor() {
    super({ allowHalfOpen: true, emitClose: true })
  }

  /** Sends one encoded packet. */
  abstract send(bytes: Buffer): void

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#writeOut(chunk)
    done()
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#writeOut(Buffer.concat(chunks.map(({ chunk }) => chunk)))
    done()
  }

  #writeOut(bytes: Buffer): void {
    if (!this.#connackSeen && bytes[0] === packetType.connack << 4) {
      this.#connackSeen = true
      // Aedes calls only a session with subscriptions present [MQTT-3.2.2-2]; a refusal never is [MQTT-3.2.2-4].
      if (bytes[3] === 0) bytes[2] = this.sessionPresent ? 1 : 0
    }
    this.send(bytes)
  }
}
