import type { Duplex } from 'node:stream'
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt'
import { publishWriter } from './publish-writer.ts'

/** How long the hub may take for CONNACK, and then for SUBACK, milliseconds. */
const answerMs = 20_000
/**
 * Length of an interval, milliseconds. If nothing arrives for two intervals, the hub is pinged; after a third one the
 * connection is ended. After three intervals without any PUBACK, although publishes wait for one, it is ended too: a hub
 * may answer pings and nothing else.
 */
const intervalMs = 10_000
/**
 * Characters that the slowest line carries in an interval. Behind a large event the ping waits as well, so both get so
 * many intervals more. The buffers of the system hide how much of it has left.
 */
const slowestLine = 10_000
/**
 * Keep alive, seconds. Browsers slow down the timers of hidden pages, so the pings of a page may come late. With a keep
 * alive as short as an interval, the hub would then end the connection.
 */
const keepaliveSeconds = 60
/** How long a proper end of the connection may take, milliseconds. */
const endMs = 2_000
/** No packet of a hub is larger: events have at most 409,600 bytes, reports less. */
const maxPacketBytes = 2 * 1024 * 1024
/** Nor is a WebSocket message, which may hold many packets. */
const maxMessageBytes = 16 * 1024 * 1024
const tooLarge = new Error(`a packet of the hub has more than ${maxPacketBytes} bytes`)

export interface LinkOptions {
  /** `mqtts://host:port`, or `wss://host:port/mqtt`. */
  url: string
  /**
   * User name, password, client id and the like; with `hostname` it says where to connect, and not `url`. `clean` false:
   * the session outlives the connection.
   */
  login: IClientOptions
  filters: readonly string[]
  /** Of the subscriptions. */
  qos: 0 | 1
  /** Reads what comes ahead of mqtt.js. */
  readAhead?: ((client: MqttClient) => void) | undefined
  answerMs?: number | undefined
}

export interface LinkEvents {
  /** The hub has answered each filter, with a QoS or a denial. `isResumed`: it kept the session. */
  subscribed(granted: readonly unknown[], isResumed: boolean): void
  /** `dup`: it may have come before, on an earlier connection. */
  message(topic: string, payload: Uint8Array, packet: { retain: boolean; dup: boolean }): void
  /** The connection is gone, or there was none. `connack`: the code of a refusal, else 0. */
  closed(connack: number, problem: Error | undefined): void
}

export interface Link {
  /** Sends at QoS 1. `acknowledged` is called at the PUBACK, and never if the connection is lost before. */
  publish(topic: string, payload: string, acknowledged: () => void): void
  /** Ends the connection. From now on nothing is told. Resolves when it is gone. */
  end(): Promise<void>
}

/**
 * One MQTT connection with its subscriptions. It is a client of mqtt.js of its own, which never connects again by itself:
 * mqtt.js repeats publishes one by one and before it subscribes, so their reports would be missed; and 5.16 never comes
 * back after a CONNACK other than 0 (findings/mqttjs-refused.sh), and forgets granted filters beside denied ones
 * (findings/mqttjs-denied-filter.sh).
 */
export function openLink({ url, login, filters, qos, ...options }: LinkOptions, events: LinkEvents): Link {
  const patienceMs = options.answerMs ?? answerMs
  const client = mqtt.connect(login.hostname === undefined ? url : '', {
    ...login,
    protocolVersion: 4,
    reconnectPeriod: 0,
    connectTimeout: patienceMs,
    keepalive: keepaliveSeconds,
    // Otherwise each packet would set a timer anew.
    reschedulePings: false,
    // The content security policy of a page may forbid the web worker of mqtt.js.
    timerVariant: 'native',
    // 65,536 prepared numbers would take 10 MB, and save no time.
    writeCache: false,
    // It would look for its name in `DEBUG` a dozen times for each packet.
    log() {},
    // Hubs compress nothing, and a small compressed message could grow a thousandfold. Browsers have no such bounds.
    wsOptions: { maxPayload: maxMessageBytes, perMessageDeflate: false },
  })
  const stream: Duplex & { setNoDelay?(isOn: boolean): void } = client.stream
  let isEnded = false
  let problem: Error | undefined
  let late: ReturnType<typeof setTimeout> | undefined
  /** Who waits for a PUBACK, by packet id, and how many do. No Map: as in `publisher.ts`. */
  const unacknowledged: ((() => void) | undefined)[] = []
  let waiting = 0
  /** Characters of the largest event since there was none without a PUBACK. */
  let largest = 0
  let packetId = 0
  const write = publishWriter((bytes) => stream.write(bytes))
  /** Intervals without any packet, and without a PUBACK that something waits for. */
  const silent = { packets: 0, acknowledgements: 0 }
  /** Bytes that have arrived since the last whole packet. */
  let bytes = 0

  const fail = (error: Error) => {
    problem ??= error
    // mqtt.js would read on behind a packet that it could not read [MQTT-4.8.0-1].
    client.end(true)
  }
  const watch = setInterval(() => {
    silent.packets = isHidden() ? 0 : silent.packets + 1
    silent.acknowledgements = waiting > 0 ? silent.acknowledgements + 1 : 0
    const granted = waiting > 0 ? Math.floor(largest / slowestLine) : 0
    if (silent.packets === 2 + granted) client.sendPing()
    if (silent.packets > 2 + granted) fail(new Error('the hub is silent'))
    if (silent.acknowledgements > 3 + granted) fail(new Error('the hub acknowledges nothing'))
  }, intervalMs)

  client.on('error', fail)
  options.readAhead?.(client)
  // First of all listeners: mqtt.js reads what is in the chunk only then. Over WebSocket, a chunk may hold many packets.
  stream.prependListener('data', (chunk: Uint8Array) => {
    if (bytes > maxPacketBytes || chunk.length > maxMessageBytes) fail(tooLarge)
    bytes += chunk.length
  })
  client.on('packetreceive', (packet) => {
    bytes = 0
    silent.packets = 0
    // It may have come in one chunk.
    if ((packet.length ?? 0) > maxPacketBytes) fail(tooLarge)
    if (packet.cmd === 'puback') acknowledge(packet.messageId ?? 0)
    if (packet.cmd !== 'publish' || (packet.qos < 2 && packet.messageId !== -1)) return
    // mqtt.js would keep a message of QoS 2, which nobody subscribes to, until the hub releases it, and throw at one that
    // ends before its packet id.
    packet.messageId = 1
    fail(new Error('the hub breaks MQTT'))
  })
  client.on('message', (topic, payload, packet) => {
    // mqtt.js goes on through what it has read already, also after its end.
    if (!isEnded && !problem) events.message(topic, payload, packet)
  })
  client.on('connect', ({ sessionPresent }) => {
    // Nagle's algorithm would hold back the second of two quick events for up to 40 ms.
    stream.setNoDelay?.(true)
    // mqtt.js would wait for SUBACK for ever.
    late = setTimeout(fail, patienceMs, new Error('no answer to SUBSCRIBE in time'))
    client.subscribe([...filters], { qos }, (error, _granted, answer) => {
      clearTimeout(late)
      if (isEnded) return
      if (answer?.granted.length === filters.length) events.subscribed(answer.granted, sessionPresent)
      else fail(error ?? new Error('the hub breaks MQTT'))
    })
  })
  client.once('close', () => {
    clearInterval(watch)
    clearTimeout(late)
    client.end(true)
    if (!isEnded) events.closed(connackOf(problem), problem)
  })

  function acknowledge(id: number): void {
    const acknowledged = unacknowledged[id]
    if (!acknowledged || isEnded || problem) return
    unacknowledged[id] = undefined
    waiting--
    silent.acknowledgements = 0
    acknowledged()
  }

  return {
    // Past mqtt.js, which would write each event in six pieces, copy its options, and keep it to repeat it.
    publish(topic, payload, acknowledged) {
      if (isEnded || problem) return
      largest = Math.max(waiting > 0 ? largest : 0, payload.length)
      do packetId = (packetId % 65_535) + 1
      while (unacknowledged[packetId])
      unacknowledged[packetId] = acknowledged
      waiting++
      write(topic, payload, packetId)
    },
    async end() {
      isEnded = true
      const ended = new Promise<void>((resolve) => {
        // Without DISCONNECT before the CONNACK, where mqtt.js would leave the connection open, and before the SUBACK, for
        // which it would wait for ever.
        client.end(!client.connected || Object.keys(client.outgoing).length > 0, () => resolve())
      })
      const destroy = setTimeout(() => stream.destroy(), endMs)
      await ended
      clearTimeout(destroy)
    },
  }
}

/** Whether a code of a SUBACK denies its filter. MQTT 3.1.1 knows 0x80 alone, and reserves the others (§3.9.3). */
export function isDenial(code: unknown): boolean {
  return Number(code) >= 0x80
}

/** A client id that nobody else has. */
export function newClientId(): string {
  return `hub-client-${crypto.randomUUID()}`
}

/** What a page has and Node.js has not. */
const page = globalThis as { document?: { visibilityState: string } }

/** Whether this is a page that nobody sees. */
export function isHidden(): boolean {
  return page.document !== undefined && page.document.visibilityState !== 'visible'
}

function connackOf(problem: Error | undefined): number {
  return problem && 'code' in problem && typeof problem.code === 'number' ? problem.code : 0
}
