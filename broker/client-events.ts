import type { Log } from '../telemetry/log.ts'
import type { CutReason, Metrics } from '../telemetry/metrics.ts'
import type { Client } from './connection/client.ts'
import type { MqttConnection } from './connection/connection.ts'
import type { ConnectionEvents } from './connection/connection-events.ts'
import type { createUnfinished } from './connection/unfinished.ts'
import type { FanOut } from './fanout/fanout.ts'
import type { RetainedSending } from './fanout/retained.ts'
import type { PacketTrace } from './packet-trace.ts'
import type { Subscribing } from './session/subscribing.ts'

/** Makes the event handlers of a connection, which call the parts of the broker. */
export function createClientEvents(parts: {
  publishing: {
    eventsOf(client: Client): Pick<ConnectionEvents, 'publishes' | 'publishing' | 'publish' | 'release'>
  }
  subscribing: Subscribing
  unfinished: ReturnType<typeof createUnfinished>
  acknowledge: FanOut['acknowledge']
  retainedSending: RetainedSending
  packetTrace: PacketTrace
  log: Log
  metrics: Metrics
}) {
  const { publishing, subscribing, unfinished, acknowledge, retainedSending, packetTrace, log, metrics } =
    parts

  return (client: Client): ConnectionEvents => {
    const { connection } = client
    return {
      ...publishing.eventsOf(client),
      ...subscribing.eventsOf(client),
      ...unfinished.eventsOf(connection),
      connecting: (frame) => packetTrace.connecting(connection, frame),
      deliveryAcknowledged: (type, packetId) => {
        if (client.session?.connection) acknowledge(client.session, type, packetId)
      },
      cut: (reason, detail) => logCut(connection, reason, detail),
      dropped: () => {
        metrics.messagesDropped.inc({ reason: 'slow' })
        retainedSending.dropped(connection)
      },
    }
  }

  function logCut({ remoteAddress, request }: MqttConnection, reason: CutReason, detail: string): void {
    metrics.connectionsCut.inc({ reason })
    // One line about the node says it for all of them.
    if (reason === 'cut-off') return
    const line = { clientId: request?.clientId, remoteAddress, reason, detail }
    if (reason === 'takeover' || reason === 'operator') log.info(line, 'connection closed')
    else log.warn(line, 'connection closed')
  }
}
