import { Duplex } from 'node:stream'

/** The stream that Aedes has in place of the socket: what Aedes writes is sent to the client. */
export abstract class InnerStream extends Duplex {
  /** Shown in CONNACK [MQTT-3.2.2-2]. */
  sessionPresent = false

  constructor() {
    super({ allowHalfOpen: true, emitClose: true })
  }

  /** Sends one encoded packet. */
  abstract send(bytes: Buffer): void

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.send(chunk)
    done()
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.send(Buffer.concat(chunks.map(({ chunk }) => chunk)))
    done()
  }
}
