import mqtt, { type MqttClient } from 'mqtt'
import { ClientError, type ErrorCode } from './errors.ts'
import { isDenial, subscribe } from './subscribe.ts'

/** Pause before the next attempt to connect, milliseconds. It grows with each failure, and is shortened at random. */
const pauseMs = { first: 1_000, longest: 60_000 }
/** Pause after a refusal that only a person can end, milliseconds. */
const refusedPauseMs = 5 * 60_000
/** How long the hub may take for CONNACK, and then for SUBACK, milliseconds. */
const answerMs = 20_000
/** Keep alive, seconds: a connection that is dead without a word is noticed after one and a half times this. */
const keepaliveSeconds = 20
/** How long a proper end of the connection may take, milliseconds. */
const endMs = 2_000

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
  /** How long the hub may take for CONNACK, and then for SUBACK, milliseconds. */
  answerMs?: number
}

export interface ConnectionEvents {
  /** The filter is granted. `isResumed`: the hub kept the session, so messages of the meantime come too. */
  ready(client: MqttClient, isResumed: boolean): void
  /** `isRepeated`: it may have come before, on an earlier connection. */
  message(payload: Uint8Array, isRepeated: boolean): void
  /** The connection is gone, or there was none. The next attempt follows by itself. */
  lost(problem: ClientError): void
  /** Only a person can help. */
  refused(problem: ClientError): void
  /** CONNACK 2: the next attempt uses another client id. */
  renamed(clientId: string): void
}

/**
 * Keeps one MQTT connection, over losses and refusals. Each attempt is a client of its own that never connects again by
 * itself: mqtt.js repeats publishes one by one and before it subscribes, so their reports would be missed; and 5.16
 * never comes back after a CONNACK other than 0 (findings/mqttjs-refused.sh).
 */
export function keepConnected(options: ConnectionOptions, events: ConnectionEvents) {
  let { clientId } = options
  let client: MqttClient | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isEnded = false
  attempt()

  function attempt(): void {
    const { url, username, password, ca, clean } = options
    const login = { ...(username !== undefined && { username }), ...(password !== undefined && { password }) }
    const current = mqtt.connect(url, {
      ...login,
      ...(ca !== undefined && { ca }),
      clientId,
      clean,
      protocolVersion: 4,
      reconnectPeriod: 0,
      connectTimeout: options.answerMs ?? answerMs,
      keepalive: keepaliveSeconds,
      // Otherwise each packet would set a timer anew.
      reschedulePings: false,
      // 65,536 prepared numbers would take 10 MB, and save no time.
      writeCache: false,
    })
    client = current
    let problem: unknown
    let denied = false
    let readyAt: number | undefined
    current.on('error', (error) => {
      problem ??= error
      // mqtt.js would read on behind a packet that it could not read [MQTT-4.8.0-1].
      current.end(true)
    })
    current.on('message', (_topic, payload, { dup }) => {
      // mqtt.js goes on through what it has read already, also after its end.
      if (!isEnded) events.message(payload, dup)
    })
    current.on('connect', ({ sessionPresent }) => {
      // Nagle's algorithm would hold back the second of two quick events for up to 40 ms.
      if ('setNoDelay' in current.stream && typeof current.stream.setNoDelay === 'function') {
        current.stream.setNoDelay(true)
      }
      // With a clean session, reports do not outlive the connection: a PUBACK for each would be for nothing.
      subscribe(current, [options.filter], clean ? 0 : 1, ([code]) => {
        if (isEnded) return
        denied = isDenial(code)
        if (denied) return void current.end(true)
        readyAt = performance.now()
        events.ready(current, sessionPresent)
      })
    })
    current.once('close', () => {
      current.end(true)
      if (isEnded) return
      client = undefined
      const code = codeOf(problem)
      if (denied) return refuse('feedback.denied', `${options.filter}: not granted`)
      if (code === 4 || code === 5)
        return refuse('login.refused', `the hub refused the log-in: CONNACK ${code}`)
      if (code === 2) {
        clientId = newClientId()
        events.renamed(clientId)
      }
      if (readyAt !== undefined && performance.now() - readyAt > pauseMs.longest) failures = 0
      failures++
      const after = Math.min(pauseMs.first * 2 ** (failures - 1), pauseMs.longest) * (0.5 + Math.random() / 2)
      timer = setTimeout(attempt, after)
      const reason = problem instanceof Error ? problem.message : 'the connection was closed'
      events.lost(new ClientError('connection.lost', `${options.url}: ${reason}`, { cause: problem }))
    })
  }

  function refuse(code: ErrorCode, message: string): void {
    if (options.outlastsRefusals) timer = setTimeout(attempt, refusedPauseMs)
    events.refused(new ClientError(code, message))
  }

  return {
    /** The connection carries what it is for: the next pause is short again. */
    proved(): void {
      failures = 0
    },
    /** Ends the connection for good. */
    async end(): Promise<void> {
      isEnded = true
      clearTimeout(timer)
      const last = client
      if (!last) return
      const ended = new Promise<void>((resolve) => {
        // Without DISCONNECT where something is unanswered: mqtt.js would wait for it for ever.
        last.end(Object.keys(last.outgoing).length > 0, () => resolve())
      })
      const late = setTimeout(() => last.stream.destroy(), endMs)
      await ended
      clearTimeout(late)
    },
  }
}

/** A client id that nobody else has. */
export function newClientId(): string {
  return `hub-client-${crypto.randomUUID()}`
}

function codeOf(problem: unknown): unknown {
  return problem instanceof Error && 'code' in problem ? problem.code : undefined
}
