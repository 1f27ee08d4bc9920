import type { Address } from './address.ts'
import { ClientError, type ErrorCode } from './errors.ts'
import { isDenial, type Link, type LinkOptions, newClientId, openLink } from './link.ts'
import { pauseAfter } from './pause.ts'

/** A connection that lasted so long ends an outage, also if nothing was published on it. */
const provenMs = 60_000
/** Pause after a refusal that only a person can end, milliseconds. */
const refusedPauseMs = 5 * 60_000

/** What differs between Node.js and browsers. */
export interface ConnectionPlatform {
  /** What an error of a connection says to a person. */
  reasonOf(problem: Error | undefined): string
  /** Reads what the hub sends, for less than mqtt.js. Pages load no code for it. */
  readAhead?: LinkOptions['readAhead']
  /** Reads `url`. Pages leave that to mqtt.js. */
  addressOf?(url: string): Address
}

export interface ConnectionOptions {
  /** `mqtts://host:port`, or `wss://host:port/mqtt`. */
  url: string
  username?: string
  password?: string
  /** PEM of the CA that is trusted. Absent: those of the system. */
  ca?: string
  clientId: string
  /** False: the session outlives the connection. */
  clean: boolean
  filter: string
  /** After CONNACK 4 or 5, or a denied filter: go on trying, every five minutes. Otherwise the first one is the end. */
  outlastsRefusals: boolean
  platform: ConnectionPlatform
  /** How long the hub may take for CONNACK, and then for SUBACK, milliseconds. */
  answerMs?: number
}

/** Sends at QoS 1, on one connection. `acknowledged` is called at the PUBACK, and never if the connection is lost before. */
export type Publish = Link['publish']

export interface ConnectionEvents {
  /** The filter is granted. `isResumed`: the hub kept the session, so messages of the meantime come too. */
  ready(publish: Publish, isResumed: boolean): void
  /** `isRepeated`: it may have come before, on an earlier connection. */
  message(payload: Uint8Array, isRepeated: boolean): void
  /** The connection is gone, or there was none. The next attempt follows by itself. */
  lost(problem: ClientError): void
  /** Only a person can help. */
  refused(problem: ClientError): void
  /** CONNACK 2: the next attempt uses another client id. */
  renamed(clientId: string): void
}

/** Keeps one MQTT connection, over losses and refusals. */
export function keepConnected(options: ConnectionOptions, events: ConnectionEvents) {
  const {
    url,
    clean,
    filter,
    outlastsRefusals,
    platform,
    answerMs,
    clientId: firstId,
    ...credential
  } = options
  let clientId = firstId
  let link: Link | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let lostAt = 0
  attempt()

  function attempt(): void {
    let readyAt: number | undefined
    const current = openLink(
      {
        url,
        login: { ...platform.addressOf?.(url), ...credential, clientId, clean },
        filters: [filter],
        // With a clean session, reports do not outlive the connection: a PUBACK for each would be for nothing.
        qos: clean ? 0 : 1,
        // It acknowledges nothing.
        readAhead: clean ? platform.readAhead : undefined,
        answerMs,
      },
      {
        message: (_topic, payload, { dup }) => events.message(payload, dup),
        subscribed([code], isResumed) {
          if (isDenial(code)) {
            void current.end()
            return refuse('feedback.denied', `${filter}: not granted`)
          }
          readyAt = performance.now()
          events.ready(publish, isResumed)
        },
        closed(connack, problem) {
          if (connack === 4 || connack === 5)
            return refuse('login.refused', `the hub refused the log-in: CONNACK ${connack}`)
          if (connack === 2) {
            clientId = newClientId()
            events.renamed(clientId)
          }
          const now = performance.now()
          if (readyAt !== undefined && now - readyAt > provenMs) failures = 0
          if (failures === 0) lostAt = now
          failures++
          timer = setTimeout(attempt, pauseAfter(failures, now - lostAt))
          events.lost(
            new ClientError('connection.lost', `${url}: ${platform.reasonOf(problem)}`, { cause: problem }),
          )
        },
      },
    )
    link = current
    const publish: Publish = (topic, payload, acknowledged) =>
      current.publish(topic, payload, () => {
        // The connection carries what it is for: the next pause is short again.
        failures = 0
        acknowledged()
      })
  }

  function refuse(code: ErrorCode, message: string): void {
    if (outlastsRefusals) timer = setTimeout(attempt, refusedPauseMs)
    events.refused(new ClientError(code, message))
  }

  return {
    /** Ends the connection for good. */
    async end(): Promise<void> {
      clearTimeout(timer)
      await link?.end()
    },
  }
}
