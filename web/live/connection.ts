import mqtt, { type MqttClient } from 'mqtt'
import { ask } from '../page/ask.ts'
import { now } from '../page/clock.ts'
import { type Credential, forgetCredential, takeCredential } from './credential.ts'

/** `refused`: the page must log in first, or may not read at all. */
export type ConnectionState = 'connecting' | 'live' | 'lost' | 'refused'

/**
 * A page renews its credential at a random time between these two. Both are milliseconds before the credential expires.
 * The random time spreads the requests of many pages.
 */
const renewMs = { latest: 2 * 60 * 1000, earliest: 6 * 60 * 1000 }
/** Pause before the next attempt to connect, milliseconds. It grows with each failure, and is shortened at random. */
const waitMs = { first: 500, longest: 20_000 }
/**
 * Length of an interval, milliseconds. If nothing arrives for two intervals, a visible page pings the hub. If nothing
 * arrives for a third interval either, the page ends the connection.
 *
 * A hidden page relies on the keep alive of MQTT. Browsers slow down the timers of hidden pages, so its MQTT pings may
 * come late. With a keep alive as short as one interval, the hub would then end the connection.
 */
const quietMs = 10_000
const lost = 'The connection to the hub was lost.'
const noWebSocket =
  'The hub answers, but no WebSocket to it opens. A proxy in front of the hub must pass on the header Upgrade (docs/deployment.md, “Behind a proxy”).'
/** MQTT 3.1.1 §3.2.2.3: the credential is not known, or may not be used. */
const credentialCodes = [4, 5]

/**
 * Keeps an MQTT connection over WebSocket, across losses and new credentials. Each new connection brings the retained
 * messages.
 */
export function connect(parts: {
  filters: readonly string[]
  received: (topic: string, payload: Uint8Array) => void
  changed: (state: ConnectionState, reason: string) => void
}) {
  const { filters, received, changed } = parts
  let current: MqttClient | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isClosed = false
  /** Whether a WebSocket has opened since the page was. */
  let hasOpened = false
  let reasonOfLoss = lost
  const hurry = () => {
    if (document.visibilityState === 'visible' && !current && timer !== undefined) void begin()
  }
  addEventListener('online', hurry)
  document.addEventListener('visibilitychange', hurry)
  changed('connecting', '')
  void begin()

  return {
    close(): void {
      isClosed = true
      clearTimeout(timer)
      removeEventListener('online', hurry)
      document.removeEventListener('visibilitychange', hurry)
      current?.end(true)
      current = undefined
    },
  }

  async function begin(isFresh = false): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const taken = await takeCredential(isFresh)
    if (isClosed) return
    if ('username' in taken) return open(taken)
    if (taken.isRefused && !current) return changed('refused', taken.reason)
    again(taken.reason, taken.retryAfter)
  }

  function open(credential: Credential): void {
    const client = mqtt.connect(`wss://${location.host}/mqtt`, {
      ...{ username: credential.username, password: credential.password },
      clientId: `page-${crypto.randomUUID()}`,
      protocolVersion: 4,
      clean: true,
      keepalive: 60,
      reconnectPeriod: 0,
      connectTimeout: 15_000,
      // The content security policy of the page forbids the web worker of MQTT.js.
      timerVariant: 'native',
      createWebsocket(url, protocols) {
        const socket = new WebSocket(url, protocols)
        socket.addEventListener('open', () => {
          hasOpened = true
          reasonOfLoss = lost
        })
        return socket
      },
    })
    let wasLive = false
    client.on('message', (topic, payload) => received(topic, payload))
    client.on('error', (error) => {
      if ('code' in error && credentialCodes.includes(Number(error.code))) forgetCredential()
    })
    client.on('connect', () => {
      endWhenDead(client)
      if (isClosed) return void client.end(true)
      client.subscribe([...filters], { qos: 1 }, (error) => {
        if (error || isClosed) return void client.end(true)
        // The former connection ends only now, so that no message is missed.
        const former = current
        current = client
        wasLive = true
        if (former !== client) former?.end(true)
        failures = 0
        renewLater(credential)
        changed('live', '')
      })
    })
    client.on('close', () => {
      client.end(true)
      const isFormer = wasLive && current !== client
      if (isClosed || isFormer) return
      if (wasLive) current = undefined
      again(reasonOfLoss)
      if (!hasOpened) void explain()
    })
  }

  /** A browser does not tell why no WebSocket opens. If `/mqtt` leads to the hub, then a proxy dropped the upgrade. */
  async function explain(): Promise<void> {
    const { status } = await ask('GET', '/mqtt')
    if (status !== 426 || hasOpened || isClosed) return
    reasonOfLoss = noWebSocket
    changed('lost', reasonOfLoss)
  }

  function renewLater({ expiresAt }: Credential): void {
    const before = renewMs.latest + Math.random() * (renewMs.earliest - renewMs.latest)
    clearTimeout(timer)
    timer = setTimeout(() => void begin(true), Math.max(expiresAt - now() - before, 10_000))
  }

  /** Tries again in a while. Reports `lost` only if no other connection is open. */
  function again(reason: string, seconds?: number): void {
    if (!current) changed('lost', reason)
    const longest = Math.min(waitMs.first * 2 ** failures++, waitMs.longest)
    const wait = seconds === undefined ? longest * (0.5 + Math.random() / 2) : seconds * 1000
    clearTimeout(timer)
    timer = setTimeout(() => void begin(), wait)
  }
}

/** Ends a connection when the node hangs or the line is dead. */
function endWhenDead(client: MqttClient): void {
  let quiet = 0
  const timer = setInterval(() => {
    quiet = document.visibilityState === 'visible' ? quiet + 1 : 0
    if (quiet === 2) client.sendPing()
    if (quiet === 3) client.end(true)
  }, quietMs)
  client.on('packetreceive', () => {
    quiet = 0
  })
  client.once('close', () => clearInterval(timer))
}
