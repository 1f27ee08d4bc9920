import type { Collected, Held } from '../listener/half-received.ts'
import type { Log } from '../telemetry/log.ts'
import type { CutReason, Metrics } from '../telemetry/metrics.ts'
import type { Client } from './connection/client.ts'
import type { ArrivedPublish, ConnectionEvents, Resume } from './connection/connection-events.ts'
import type { Frame } from './connection/frames.ts'
import type { FiltersFrame } from './connection/packets.ts'
import type { createUnfinished } from './connection/unfinished.ts'
import type { FanOut } from './fanout/fanout.ts'
import type { RetainedSending } from './fanout/retained.ts'
import type { PacketTrace } from './packet-trace.ts'
import type { createPublishing } from './publish.ts'
import type { Subscribing } from './session/subscribing.ts'

interface Parts {
  publishing: ReturnType<typeof createPublishing>
  subscribing: Subscribing
  unfinished: ReturnType<typeof createUnfinished>
  acknowledge: FanOut['acknowledge']
  retainedSending: RetainedSending
  packetTrace: PacketTrace
  log: Log
  metrics: Metrics
}

/**
 * Hands what a connection tells or asks to the parts of the broker.
 *
 * A class: a node has thousands of connections, and functions of its own would take 4 kB of each.
 */
export class ClientEvents implements ConnectionEvents {
  readonly #client: Client
  readonly #parts: Parts

  constructor(client: Client, parts: Parts) {
    this.#client = client
    this.#parts = parts
  }

  connecting(frame: Frame): void {
    this.#parts.packetTrace.connecting(this.#client.connection, frame)
  }

  collect(isBeforeLogIn: boolean, end: () => void): Collected {
    return this.#parts.unfinished.collect(this.#client.connection, isBeforeLogIn, end)
  }

  countBytes(end: () => void): Held {
    return this.#parts.unfinished.countBytes(end)
  }

  deliveryAcknowledged(type: number, packetId: number): void {
    const { session } = this.#client
    if (session?.connection) this.#parts.acknowledge(session, type, packetId)
  }

  publishes(): boolean {
    return this.#parts.publishing.publishes(this.#client)
  }

  publishing(bytes: number, resume: Resume): boolean {
    return this.#parts.publishing.enter(this.#client, bytes, resume)
  }

  publish(publish: ArrivedPublish): void {
    this.#parts.publishing.take(this.#client, publish)
  }

  release(packetId: number): Promise<void> {
    return this.#parts.publishing.release(this.#client, packetId)
  }

  requesting(filters: number, resume: Resume): boolean {
    return this.#parts.subscribing.enter(this.#client, filters, resume)
  }

  async subscribe(request: FiltersFrame): Promise<void> {
    const { session } = this.#client
    if (session) await this.#parts.subscribing.subscribe(session, request)
  }

  async unsubscribe(request: FiltersFrame): Promise<void> {
    const { session } = this.#client
    if (session) await this.#parts.subscribing.unsubscribe(session, request)
  }

  cut(reason: CutReason, detail: string): void {
    const { log, metrics } = this.#parts
    const { remoteAddress, request } = this.#client.connection
    metrics.connectionsCut.inc({ reason })
    // One line about the node says it for all of them.
    if (reason === 'cut-off') return
    const line = { clientId: request?.clientId, remoteAddress, reason, detail }
    if (reason === 'takeover' || reason === 'operator') log.info(line, 'connection closed')
    else log.warn(line, 'connection closed')
  }

  dropped(): void {
    const { metrics, retainedSending } = this.#parts
    metrics.messagesDropped.inc({ reason: 'slow' })
    retainedSending.dropped(this.#client.connection)
  }
}
