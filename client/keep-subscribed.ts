import mqtt, { type IClientOptions, type MqttClient } from 'mqtt'
import { isDenial, subscribe } from './subscribe.ts'

/** `refused`: no further attempt follows, only a person can help. */
export type ConnectionState = 'connecting' | 'live' | 'lost' | 'refused'

/** With what a reader logs in. */
export interface ReaderLogin {
  username: string
  password: string
  /** From then on the hub refuses it, milliseconds since the epoch by `clock`. Absent: it has no end. */
  expiresAt?: number
}

/** Why there is no login now. `isRefused`: the hub gives none. `retryAfter`: seconds. */
export interface NoLogin {
  isRefused: boolean
  reason: string
  retryAfter: number | undefined
}

export interface SubscriptionParts {
  /** Where the WebSocket or the TLS connection leads. */
  url: string
  /** Options of mqtt.js beside those that are the same for everybody. */
  options?: IClientOptions
  clientId: () => string
  filters: readonly string[]
  /** Gives the login of the next connection. `isFresh`: one that ends later than the present one. */
  logIn(isFresh: boolean): Promise<ReaderLogin | NoLogin>
  /** CONNACK 4 or 5. Returns whether another login may help. */
  loginRefused(code: number): boolean
  received(topic: string, payload: Uint8Array, isRetained: boolean): void
  /** `reason`: why there is no login; empty where the connection was lost. `cause`: the error of that, if there was one. */
  changed(state: ConnectionState, reason: string, cause?: Error): void
  /** 0x80 in the SUBACK. Told once for each filter. Those that are granted stay. */
  denied(filter: string): void
  clock?: () => number
}

/**
 * A login is renewed at a random time between these two, milliseconds before it ends. The random time spreads the
 * requests of many clients.
 */
const renewMs = { latest: 2 * 60 * 1000, earliest: 6 * 60 * 1000 }
/** Pause before the next attempt to connect, milliseconds. It grows with each failure, and is shortened at random. */
const waitMs = { first: 500, longest: 20_000 }
/**
 * Length of an interval, milliseconds. If nothing arrives for two intervals, the hub is pinged. If nothing arrives for a
 * third interval either, the connection is ended.
 *
 * A hidden page relies on the keep alive of MQTT. Browsers slow down the timers of hidden pages, so its MQTT pings may
 * come late. With a keep alive as short as one interval, the hub would then end the connection.
 */
const quietMs = 10_000
/** The reason of `refused` if all filters were denied. */
export const noneGranted = 'The credential permits none of the filters.'
/** MQTT 3.1.1 §3.2.2.3: the credential is not known, or may not be used. */
const credentialCodes = [4, 5]

/**
 * Keeps subscriptions across lost connections and new logins. Each new connection brings the retained messages. Each is
 * a client of mqtt.js of its own, which never connects again by itself: 5.16 then forgets granted filters beside denied
 * ones (findings/mqttjs-denied-filter.sh), and never comes back after a CONNACK other than 0
 * (findings/mqttjs-refused.sh).
 */
export function keepSubscribed(parts: SubscriptionParts) {
  const { filters, received, changed, clock = Date.now } = parts
  const denied = new Set<string>()
  let current: MqttClient | undefined
  const opening = new Set<MqttClient>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isClosed = false
  const endWatch = watchPage(() => {
    if (!current && timer !== undefined) void begin()
  })
  changed('connecting', '')
  void begin()
  return { close }

  /** Ends the connection. Resolves when it is gone. */
  async function close(): Promise<void> {
    isClosed = true
    clearTimeout(timer)
    endWatch()
    const clients = [...opening, ...(current ? [current] : [])]
    opening.clear()
    current = undefined
    await Promise.all(clients.map((client) => client.endAsync(true)))
  }

  function refuse(reason: string): void {
    void close()
    changed('refused', reason)
  }

  async function begin(isFresh = false): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const taken = await parts.logIn(isFresh)
    if (isClosed) return
    if ('username' in taken) return open(taken)
    if (taken.isRefused && !current) return refuse(taken.reason)
    again(taken.reason, taken.retryAfter)
  }

  function open(login: ReaderLogin): void {
    const client = mqtt.connect(parts.url, {
      username: login.username,
      password: login.password,
      clientId: parts.clientId(),
      protocolVersion: 4,
      clean: true,
      keepalive: 60,
      reconnectPeriod: 0,
      connectTimeout: 15_000,
      // The content security policy of a page may forbid the web worker of mqtt.js.
      timerVariant: 'native',
      // 65,536 prepared numbers would take 10 MB, and save no time.
      writeCache: false,
      ...parts.options,
    })
    opening.add(client)
    let wasLive = false
    let refusal: number | undefined
    let cause: Error | undefined
    client.on('message', (topic, payload, { retain }) => {
      // mqtt.js goes on through what it has read already, also after its end.
      if (!isClosed) received(topic, payload, retain)
    })
    client.on('error', (error) => {
      cause ??= error
      // mqtt.js would read on behind a packet that it could not read [MQTT-4.8.0-1].
      client.end(true)
      const code = 'code' in error ? Number(error.code) : 0
      if (credentialCodes.includes(code)) refusal = code
    })
    client.on('connect', () => {
      endWhenDead(client)
      if (isClosed) return void client.end(true)
      subscribe(client, filters, 1, (codes) => {
        if (isClosed) return void client.end(true)
        tellDenied(codes)
        if (isClosed) return
        // The former connection ends only now, so that no message is missed.
        const former = current
        opening.delete(client)
        current = client
        wasLive = true
        if (former !== client) former?.end(true)
        failures = 0
        renewLater(login)
        changed('live', '')
      })
    })
    client.on('close', () => {
      client.end(true)
      opening.delete(client)
      const isFormer = wasLive && current !== client
      if (isClosed || isFormer) return
      if (wasLive) current = undefined
      if (refusal !== undefined && !parts.loginRefused(refusal)) {
        return refuse(`The hub refused user name and password (CONNACK ${refusal}).`)
      }
      again('', undefined, cause)
    })
  }

  function tellDenied(codes: readonly unknown[]): void {
    for (const [index, filter] of filters.entries()) {
      if (!isDenial(codes[index])) denied.delete(filter)
      else if (!denied.has(filter)) {
        denied.add(filter)
        parts.denied(filter)
      }
    }
    if (denied.size === filters.length) refuse(noneGranted)
  }

  function renewLater({ expiresAt }: ReaderLogin): void {
    clearTimeout(timer)
    timer = undefined
    if (expiresAt === undefined) return
    const before = renewMs.latest + Math.random() * (renewMs.earliest - renewMs.latest)
    timer = setTimeout(() => void begin(true), Math.max(expiresAt - clock() - before, 10_000))
  }

  /** Tries again in a while. Reports `lost` only if no other connection is open. */
  function again(reason: string, seconds?: number, cause?: Error): void {
    if (!current) changed('lost', reason, cause)
    const longest = Math.min(waitMs.first * 2 ** failures++, waitMs.longest)
    const wait = seconds === undefined ? longest * (0.5 + Math.random() / 2) : seconds * 1000
    clearTimeout(timer)
    timer = setTimeout(() => void begin(), wait)
  }
}

/** What a page has and Node.js has not. */
interface Page {
  document?: EventTarget & { visibilityState: string }
  addEventListener?(name: string, listener: () => void): void
  removeEventListener?(name: string, listener: () => void): void
}

const page = globalThis as Page

/** In a page: calls `hurry` when an attempt is worth it at once. The returned function ends that. */
function watchPage(hurry: () => void): () => void {
  const shown = () => {
    if (!isHidden()) hurry()
  }
  page.addEventListener?.('online', shown)
  page.document?.addEventListener('visibilitychange', shown)
  return () => {
    page.removeEventListener?.('online', shown)
    page.document?.removeEventListener('visibilitychange', shown)
  }
}

function isHidden(): boolean {
  return page.document !== undefined && page.document.visibilityState !== 'visible'
}

/** Ends a connection when the node hangs or the line is dead. */
function endWhenDead(client: MqttClient): void {
  let quiet = 0
  const timer = setInterval(() => {
    quiet = isHidden() ? 0 : quiet + 1
    if (quiet === 2) client.sendPing()
    if (quiet === 3) client.end(true)
  }, quietMs)
  client.on('packetreceive', () => {
    quiet = 0
  })
  client.once('close', () => clearInterval(timer))
}
