import type { IClientOptions } from 'mqtt'
import { isDenial, isHidden, type Link, openLink } from './link.ts'

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
  /** How long the hub may take for CONNACK, and then for SUBACK, milliseconds. */
  answerMs?: number
}

/**
 * A login is renewed at a random time between these two, milliseconds before it ends. The random time spreads the
 * requests of many clients.
 */
const renewMs = { latest: 2 * 60 * 1000, earliest: 6 * 60 * 1000 }
/** Pause before the next attempt to connect, milliseconds. It grows with each failure, and is shortened at random. */
const waitMs = { first: 500, longest: 20_000 }
/** The reason of `refused` if all filters were denied. */
export const noneGranted = 'The credential permits none of the filters.'
/** MQTT 3.1.1 §3.2.2.3: the credential is not known, or may not be used. */
const credentialCodes = [4, 5]

/** Keeps subscriptions across lost connections and new logins. Each new connection brings the retained messages. */
export function keepSubscribed(parts: SubscriptionParts) {
  const { filters, received, changed, clock = Date.now } = parts
  const denied = new Set<string>()
  let current: Link | undefined
  /** The next ones, until their filters are granted: the present one may be lost while another is being opened. */
  const opening = new Set<Link>()
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
    await Promise.all([...opening, current].map((link) => link?.end()))
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

  function open({ username, password, expiresAt }: ReaderLogin): void {
    const link = openLink(
      {
        url: parts.url,
        login: { ...parts.options, username, password, clientId: parts.clientId(), clean: true },
        filters,
        qos: 1,
        answerMs: parts.answerMs,
      },
      {
        message: (topic, payload, { retain }) => received(topic, payload, retain),
        subscribed(codes) {
          tellDenied(codes)
          if (isClosed) return
          // The former connection ends only now, so that no message is missed.
          void current?.end()
          current = link
          opening.delete(link)
          failures = 0
          renewLater(expiresAt)
          changed('live', '')
        },
        closed(connack, problem) {
          if (current === link) current = undefined
          opening.delete(link)
          if (credentialCodes.includes(connack) && !parts.loginRefused(connack)) {
            return refuse(`The hub refused user name and password (CONNACK ${connack}).`)
          }
          again('', undefined, problem)
        },
      },
    )
    opening.add(link)
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

  function renewLater(expiresAt: number | undefined): void {
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
  document?: EventTarget
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
