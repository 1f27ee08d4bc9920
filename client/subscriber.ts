import type { Address } from './address.ts'
import { ClientError, type ErrorCode, errorCodes } from './errors.ts'
import type { EventOfKind } from './events.ts'
import type { Http } from './http.ts'
import { type ConnectionState, keepSubscribed, noneGranted } from './keep-subscribed.ts'
import { eventIn, isRecord, type Kind, kindOf } from './kind.ts'
import { createMessageQueue } from './message-queue.ts'
import type { NowPlaying } from './now-playing.ts'
import { createNowPlaying, type NowPlayingOfAll } from './now-playing-of-all.ts'
import { checkLoginText, checkUrl, wrongOption } from './options.ts'
import { givenLogin, hourlyLogins, type Logins } from './reader-logins.ts'
import { createTelling } from './telling.ts'

export interface SubscriberOptions {
  /** `mqtts://host:8883`, `wss://host:8443/mqtt`, or `https://host:8443`, which is read over WebSocket. */
  url: string
  /** Absent: the node has a public page and gives everybody a credential for an hour. `url` is then https or wss. */
  username?: string | undefined
  password?: string | undefined
  /** CA to trust instead of those of the system: PEM text or, in Node.js, the path of a PEM file. */
  ca?: string | undefined
  /** Topic filters, such as `radio/+/track/playing` (docs/subscribers.md). */
  filters: readonly string[]
  /**
   * Told of denied filters (`filter.denied`), of a lost connection (`connection.lost`: the next attempt follows by
   * itself), of more livestreams than `nowPlaying` keeps (`livestreams.full`), and of the end (`login.refused`). Default: a line on `console.warn`.
   */
  onProblem?: ((problem: ClientError) => void) | undefined
}

/** An event of one livestream. */
export interface Message<K extends Kind = Kind> {
  kind: K
  livestreamId: string
  event: EventOfKind[K]
  /** It was the newest already when the connection was made. Not: it is old. */
  retained: boolean
}

/** A message of any kind, to be told apart by `kind`. */
export type AnyMessage = { [K in Kind]: Message<K> }[Kind]

/** What `on` can listen to. */
export type SubscriberEvents = { [K in Kind]: Message<K> } & {
  /** What is shown of a livestream is another than before. Also at `validUntil` of a control state. */
  changed: { livestreamId: string; nowPlaying: NowPlaying }
  state: ConnectionState
}

export interface Subscriber {
  /** Every message from now on. Ends with `close`. Rejects with the `ClientError` after which nothing more comes. */
  [Symbol.asyncIterator](): AsyncIterator<AnyMessage & { dropped: number }, undefined>
  /** Calls the listener for each. The returned function ends that. */
  on<Name extends keyof SubscriberEvents>(
    name: Name,
    listener: (value: SubscriberEvents[Name]) => void,
  ): () => void
  /** What each livestream shows now, by its id. */
  readonly nowPlaying: NowPlayingOfAll
  readonly state: ConnectionState
  /** Ends the connection, and all iterations. */
  close(): Promise<void>
}

/** What differs between Node.js and browsers. Both throw `ClientError`. */
export interface SubscriberPlatform {
  /** PEM of a CA. */
  readCa(ca: string): string
  httpTrusting(ca: string | undefined): Http
  /** What an error of a connection says to a person. */
  reasonOf(problem: Error | undefined): string
  /** Reads `url`. Pages leave that to mqtt.js. */
  addressOf?(url: string): Address
}

/** See `connectSubscriber` of the two platforms. */
export function createSubscriber(options: SubscriberOptions, platform: SubscriberPlatform): Subscriber {
  checkOptions(options)
  const { onProblem = ({ message }) => console.warn(message) } = options
  const telling = createTelling(onProblem)
  const ca = options.ca === undefined ? undefined : platform.readCa(options.ca)
  const url = options.url.replace(/^(?:https|wss):\/\/([^/]+)\/?$/, 'wss://$1/mqtt')
  const listeners = new Map<keyof SubscriberEvents, Set<(value: never) => void>>()
  const queues = new Set<ReturnType<typeof createMessageQueue<AnyMessage>>>()
  const nowPlaying = createNowPlaying(
    (livestreamId, state) => emit('changed', { livestreamId, nowPlaying: state }),
    () => tell('livestreams.full', `${url}: ${errorCodes['livestreams.full']}`),
  )
  let state: ConnectionState = 'connecting'
  let end: { error?: ClientError } | undefined
  const connection = keepSubscribed({
    url,
    options: { ...platform.addressOf?.(url), ...(ca !== undefined && { ca }) },
    filters: [...new Set(options.filters)],
    ...loginsOf(options, platform.httpTrusting(ca)),
    received,
    denied: (filter) => tell('filter.denied', `${filter}: the credential does not permit this filter`),
    changed(next, reason, cause) {
      state = next
      if (next === 'live') telling.connected()
      if (next === 'lost') {
        tell('connection.lost', `${url}: ${reason || platform.reasonOf(cause)}`, cause)
      }
      if (next === 'refused') {
        finish(tell(reason === noneGranted ? 'filter.denied' : 'login.refused', `${url}: ${reason}`, cause))
      }
      emit('state', next)
    },
  })

  return {
    [Symbol.asyncIterator]() {
      const queue = createMessageQueue<AnyMessage>()
      if (end) queue.end(end.error)
      queues.add(queue)
      return {
        async next() {
          const taken = await queue.next()
          return taken === undefined
            ? { done: true, value: undefined }
            : { done: false, value: { ...taken.value, dropped: taken.dropped } }
        },
        async return() {
          queues.delete(queue)
          queue.end()
          return { done: true, value: undefined }
        },
      }
    },
    on(name, listener) {
      const known = listeners.get(name) ?? new Set()
      listeners.set(name, known.add(listener))
      return () => void known.delete(listener)
    },
    nowPlaying,
    get state() {
      return state
    },
    async close() {
      finish()
      await connection.close()
    },
  }

  function received(topic: string, payload: Uint8Array, retained: boolean): void {
    const [, livestreamId = ''] = topic.split('/')
    const event = eventIn(payload)
    const row = kindOf(event)
    // Kinds that are newer than this package are left out (docs/subscribers.md, "What arrives").
    if (row === undefined || !isRecord(event)) return
    const { kind, slotField } = row
    const message = { kind, livestreamId, event, retained } as unknown as AnyMessage
    nowPlaying.take(livestreamId, event)
    // Control states with different names live side by side on one topic.
    const slot = slotField === undefined ? undefined : event[slotField]
    const key = `${topic} ${typeof slot === 'string' ? slot : ''}`
    for (const queue of queues) queue.push(key, message, payload.length)
    emit(kind, message as never)
  }

  function emit<Name extends keyof SubscriberEvents>(name: Name, value: SubscriberEvents[Name]): void {
    for (const listener of listeners.get(name) ?? []) {
      callSafely(listener as (value: SubscriberEvents[Name]) => void, value)
    }
  }

  function tell(code: ErrorCode, message: string, cause?: Error): ClientError {
    const problem = new ClientError(code, message, { cause })
    callSafely(telling.tell, problem)
    return problem
  }

  function finish(error?: ClientError): void {
    end ??= error === undefined ? {} : { error }
    nowPlaying.close()
    for (const queue of queues) queue.end(error)
  }
}

/** Calls a function of the caller. As with event targets, its mistake is seen, and stops nothing else. */
function callSafely<Value>(call: (value: Value) => void, value: Value): void {
  try {
    call(value)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}

function loginsOf({ url, username, password = '' }: SubscriberOptions, http: Http): Logins {
  if (username !== undefined) return givenLogin({ username, password })
  return hourlyLogins(http, `https://${new URL(url).host}`)
}

function checkOptions({ url, username, password, filters }: SubscriberOptions): void {
  const { protocol } = checkUrl(url, ['mqtts://', 'wss://', 'https://'])
  if (username === undefined && protocol === 'mqtts:') {
    wrongOption('username', 'is missing: without one, url must begin with https:// or wss://')
  }
  if (username !== undefined) {
    checkLoginText('username', username)
    checkLoginText('password', password)
  }
  const isList = Array.isArray(filters) && filters.length > 0
  if (!isList || filters.some((filter) => typeof filter !== 'string' || !isFilter.test(filter))) {
    wrongOption('filters', 'must be a list of topic filters, such as radio/+/track/playing')
  }
}

/** MQTT 3.1.1 §4.7.1: a wildcard fills its level, and # is the last one. mqtt.js would send nothing else. */
const isFilter = /^(?=.)(?:(?:\+|[^/+#]*)\/)*(?:#|\+|[^/+#]*)$/s
