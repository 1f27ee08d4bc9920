import type { Frame } from './frames.ts'

/** Sees the packets of a connection whose client is traced. Must not keep the bytes: they may change. */
export interface PacketWatcher {
  /** The hub takes a packet of the client. */
  received(frame: Frame): void
  /** The hub sends packets to the client. */
  sent(bytes: Buffer): void
  /** What the hub does with the client, beside packets. */
  note(text: string): void
  /** The connection ends. Only the first reason counts. */
  ended(reason: string): void
}
