import { Duplex } from 'node:stream'

/** The stream that Aedes gets instead of the socket. The client gets all bytes that Aedes writes. */
export abstract class InnerStream extends Duplex {
  /** The session present flag of the CONNACK [MQTT-3.2.2-2]. */
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
