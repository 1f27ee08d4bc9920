import { type ConnectionPlatform, keepConnected, type Publish } from './connection.ts'
import { ClientError } from './errors.ts'
import { newClientId } from './link.ts'
import type { Sendable } from './newest-first.ts'
import { checkLoginText, checkUrl, wrongOption } from './options.ts'
import type { Outbox } from './outbox.ts'
import { longestTimerMs } from './pause.ts'
import { type Publishable, writeEvent } from './publishable.ts'
import { EventRefused } from './refusal.ts'
import { type Report, reportReader } from './report.ts'
import { createTelling } from './telling.ts'
import { longestWaitMs, type Worth } from './worth.ts'

export type Publisher = ReturnType<typeof createPublisher>

export interface PublisherOptions {
  /** `mqtts://host:8883`, or `wss://host:8443/mqtt`. */
  url: string
  username: string
  password: string
  /** CA to trust instead of those of the system: PEM text or, in Node.js, the path of a PEM file. */
  ca?: string | undefined
  /** The institution that the events belong to: `urn:org:institution:…`. */
  institution: string
  /** Path of a file that keeps events until the hub has answered, also over the end of the process. Node.js only. */
  outbox?: string | undefined
  /** How long a report may take after the acknowledgement, milliseconds. Default: 30,000. */
  reportTimeout?: number | undefined
  /**
   * Told whenever there is no connection (`connection.lost`), the hub refuses it or an event that nobody waits for
   * (`event.refused`), or the outbox was damaged; the same again at most once a minute. Default: a line on `console.warn`.
   */
  onProblem?: ((problem: ClientError) => void) | undefined
  /** Told when there is a connection again, after a problem with it. Default: a line on `console.warn`, unless `onProblem` is given. */
  onConnected?: (() => void) | undefined
}

/** The hub has the event, and what became of it is not known: no report came, also when the event was sent once more. */
export interface Unknown {
  outcome: 'unknown'
  acknowledged: true
}

/** An event of an earlier process that was still in the outbox, and what becomes of it now. */
export interface Restored {
  event: unknown
  result: Promise<Report | Unknown>
}

/** What differs between Node.js and browsers. */
export interface Platform extends ConnectionPlatform {
  /** First 16 hexadecimal digits of the SHA-256 of a text. Promises are kept in order. */
  hash(text: string): string | Promise<string>
  /** PEM of a CA. Throws `ClientError`. */
  readCa(ca: string): string
  /** Throws `ClientError`. */
  openOutbox(path: string): Outbox
  createWorth<Item extends Sendable>(onProblem: (problem: ClientError) => void): Worth<Item>
}

/** Publishes without a report. More wait. */
const maxUnreported = 500
/** What may wait in all: events, and characters of their JSON. */
const maxWaiting = { events: 20_000, characters: 64 * 1024 * 1024 }
/** How many settled events are remembered, to swallow further reports about them. */
const maxSettled = 1_000
/** How often events are looked for that have waited too long, milliseconds. */
const sweepMs = 60_000
/** How long `close` waits for answers of the hub unless told otherwise, milliseconds. */
const closeMs = 10_000

interface Item extends Sendable {
  place: number
  /** Payload hash, and whether it is a dry run: what a report is matched by. */
  key: string
  topic: string
  /** Its number in the outbox. */
  number: number | undefined
  /** When it was published, milliseconds by the monotonic clock. */
  since: number
  /** The same by the clock of the machine. */
  at: number
  sends: number
  reports: number
  report: Report | undefined
  timer: ReturnType<typeof setTimeout> | undefined
  resolve(result: Report | Unknown): void
  reject(error: Error): void
}

/** Publishes events of one institution over MQTT, and tells what the hub decided about each (open.md §1). */
export function createPublisher(options: PublisherOptions, platform: Platform) {
  const {
    url,
    institution,
    reportTimeout = 30_000,
    onProblem = ({ message }) => console.warn(message),
  } = options
  const { onConnected = options.onProblem ? () => {} : () => console.warn(`${url}: connected again`) } =
    options
  const telling = createTelling(onProblem)
  checkOptions(options)
  const ca = options.ca === undefined ? undefined : platform.readCa(options.ca)
  const outbox = options.outbox === undefined ? undefined : platform.openOutbox(options.outbox)
  const inbox = `inbox/${institution}`
  const checks = `${inbox}/check`
  const clientId = outbox?.clientId ?? newClientId()
  let readReport = reportReader(clientId)
  /**
   * All that is not settled, by place, which is the order of `publish`. It is no Map and no Set, nor is `sent`: they leave
   * a chain of their former tables behind, which keeps each settled event from the young garbage collection.
   */
  let items: Record<number, Item> = {}
  let count = 0
  let places = 0
  /** Of these, what has not been sent yet. */
  const queue = new Set<Item>()
  /** What has been sent, by key. Of equal events the first one gets the first report. */
  const sent: Record<string, Item[]> = {}
  /** Settled events, by key, with the number of further reports that may come. */
  const settled = new Map<string, number>()
  const worth = outbox && platform.createWorth<Item>(onProblem)
  let characters = 0
  let unreported = 0
  /** Undefined while there is no connection. */
  let publish: Publish | undefined
  let refusal: ClientError | undefined
  let closing: Promise<{ unsettled: unknown[] }> | undefined
  let onIdle = () => {}

  const restored = (outbox?.restored ?? []).map(restore)
  if (outbox?.damaged)
    onProblem(new ClientError('outbox.damaged', `${options.outbox}: ${outbox.damaged} lines`))
  const sweep = setInterval(dropTooOld, sweepMs)
  const connection = keepConnected(
    {
      url,
      username: options.username,
      password: options.password,
      ...(ca !== undefined && { ca }),
      clientId,
      // Without an outbox the session would outlive the process, and nobody would come back for it.
      clean: outbox === undefined,
      filter: `feedback/${institution}`,
      outlastsRefusals: outbox !== undefined,
      platform,
    },
    {
      ready(onThis, isResumed) {
        if (telling.connected()) onConnected()
        refusal = undefined
        dropTooOld()
        if (worth) {
          drop(worth.ended(unsettled().filter(isPublish), Date.now()))
          for (const item of worth.hold(unsettled().filter(isPublish))) leaveOut(item)
        }
        publish = onThis
        for (const item of unsettled()) {
          if (item.isAcknowledged) {
            // A session that the hub did not keep: the report went to nobody.
            if (!isResumed) reportMissed(item)
          } else if (item.sends > 0 && !queue.has(item) && !worth?.isHeld(item)) send(item)
        }
        sendWaiting()
      },
      message: received,
      lost(problem) {
        publish = undefined
        telling.tell(problem)
      },
      refused(problem) {
        publish = undefined
        refusal = problem
        for (const item of unsettled()) {
          item.reject(problem)
          // What is in the outbox goes out if a later log-in succeeds.
          if (item.number === undefined) forget(item)
          else worth?.leftAlone(item)
        }
        telling.tell(problem)
        onIdle()
      },
      renamed(next) {
        readReport = reportReader(next)
        outbox?.rename(next)
      },
    },
  )

  function submit(event: Publishable, dryRun: boolean): Promise<Report | Unknown> {
    return new Promise((resolve, reject) => {
      if (closing) throw new ClientError('closed')
      if (refusal && (dryRun || !outbox)) throw refusal
      const payload = writeEvent(event)
      if (count >= maxWaiting.events || characters + payload.length > maxWaiting.characters) {
        throw new ClientError('full')
      }
      const item = newItem(++places, payload, dryRun ? checks : inbox, resolve, reject)
      add(item)
      if (outbox && !dryRun) {
        keep(item, outbox).catch((error: Error) => {
          forget(item)
          reject(error)
        })
        if (refusal) {
          reject(refusal)
          worth?.leftAlone(item)
        }
      } else enqueue(item, platform.hash(payload))
    })
  }

  function add(item: Item): void {
    items[item.place] = item
    count++
    characters += item.payload.length
    if (isPublish(item)) worth?.add(item)
  }

  /** The event is on disk before it is sent. */
  async function keep(item: Item, outbox: Outbox): Promise<void> {
    const { number, synced } = outbox.add(item.payload)
    item.number = number
    await synced
    enqueue(item, platform.hash(item.payload))
  }

  function enqueue(item: Item, hash: string | Promise<string>): void {
    if (typeof hash !== 'string') return void hash.then((known) => enqueue(item, known), item.reject)
    // It may have been given up meanwhile.
    if (!isWaiting(item)) return
    item.key = keyOf(hash, !isPublish(item))
    if (worth?.isHeld(item)) return
    if (publish && queue.size === 0 && unreported < maxUnreported) sendFirst(item)
    else queue.add(item)
  }

  function restore({ number, payload, ageMs }: Outbox['restored'][number]): Restored {
    const result = new Promise<Report | Unknown>((resolve, reject) => {
      const item = newItem(++places, payload, inbox, resolve, reject)
      item.number = number
      item.since -= ageMs
      item.at -= ageMs
      worth?.leftAlone(item)
      add(item)
      enqueue(item, platform.hash(payload))
    })
    // Who does not look at it must not be ended by it.
    result.catch(() => {})
    return { event: JSON.parse(payload), result }
  }

  function sendWaiting(): void {
    if (!publish || queue.size === 0) return
    for (const item of queue) {
      if (unreported >= maxUnreported) return
      queue.delete(item)
      sendFirst(item)
    }
  }

  function sendFirst(item: Item): void {
    unreported++
    const equal = sent[item.key]
    if (equal) equal.push(item)
    else sent[item.key] = [item]
    send(item)
  }

  function send(item: Item): void {
    item.sends++
    item.report = undefined
    // If the connection is lost first, the event is sent again on the next one.
    publish?.(item.topic, item.payload, () => acknowledged(item))
  }

  function acknowledged(item: Item): void {
    if (!isWaiting(item) || item.isAcknowledged) return
    item.isAcknowledged = true
    if (item.report) settle(item, item.report)
    else item.timer = setTimeout(reportMissed, reportTimeout, item)
  }

  function received(payload: Uint8Array, isRepeated: boolean): void {
    const report = readReport(payload)
    if (!report) return
    const key = keyOf(report.payloadHash, report.dryRun === true)
    const item = sent[key]?.find((each) => each.report === undefined)
    if (isOfSettled(key, isRepeated, item) || !item) return
    item.report = report
    item.reports++
    if (item.isAcknowledged) settle(item, report)
  }

  /** Whether a report is about an earlier, equal event: that one was sent more than once, and is settled. */
  function isOfSettled(key: string, isRepeated: boolean, item: Item | undefined): boolean {
    const further = settled.get(key)
    if (further === undefined) return false
    if (further === 0) return isRepeated && item?.isAcknowledged !== true
    settled.set(key, further - 1)
    return true
  }

  /** The report may have gone to a lost connection, and is not retained. An event that is sent once more keeps its id. */
  function reportMissed(item: Item): void {
    clearTimeout(item.timer)
    if (item.isSentAgain || isTooOld(item)) {
      forget(item)
      item.resolve({ outcome: 'unknown', acknowledged: true })
      return
    }
    item.isSentAgain = true
    item.isAcknowledged = false
    if (publish) send(item)
  }

  function settle(item: Item, report: Report): void {
    remember(item)
    // Before the newer one is settled: after a kill between the two, only the newer one is sent again.
    if (worth && report.outcome === 'published') drop(worth.superseded(item))
    forget(item)
    if (report.outcome === 'published') {
      item.resolve(report)
    } else {
      const refused = new EventRefused(report.outcome, report.errors)
      item.reject(refused)
      worth?.refused(item, refused)
    }
  }

  function remember({ key, sends, reports }: Item): void {
    const further = (settled.get(key) ?? 0) + sends - reports
    // Of a clean session the hub repeats nothing on the next connection.
    if (further === 0 && outbox === undefined) return void settled.delete(key)
    settled.delete(key)
    settled.set(key, further)
    for (const oldest of settled.keys()) {
      if (settled.size <= maxSettled) break
      settled.delete(oldest)
    }
  }

  function forget(item: Item): void {
    clearTimeout(item.timer)
    delete items[item.place]
    count--
    characters -= item.payload.length
    if (item.number !== undefined) outbox?.settled(item.number)
    leaveOut(item)
    // What is not on the disk yet follows by itself.
    for (const due of worth?.left(item) ?? []) if (due.key !== '') queue.add(due)
    sendWaiting()
    if (count === 0) onIdle()
  }

  function leaveOut(item: Item): void {
    queue.delete(item)
    takeBack(item)
  }

  /** It is no longer one that the hub has to answer. */
  function takeBack(item: Item): void {
    const equal = sent[item.key]
    const place = equal?.indexOf(item) ?? -1
    if (!equal || place < 0) return
    unreported--
    if (equal.length > 1) equal.splice(place, 1)
    else delete sent[item.key]
  }

  function unsettled(): Item[] {
    return Object.values(items)
  }

  function isWaiting({ place }: Item): boolean {
    return place in items
  }

  function isPublish(item: Item): boolean {
    return item.topic === inbox
  }

  function dropTooOld(): void {
    for (const item of unsettled().filter(isTooOld)) {
      if (item.isAcknowledged || item.isSentAgain) reportMissed(item)
      else drop([[item, 'too old: it has waited for 55 minutes']])
    }
  }

  function drop(items: readonly [Item, string][]): void {
    for (const [item, why] of items) {
      forget(item)
      item.reject(new ClientError('superseded', why))
    }
  }

  async function end(waitMs: number): Promise<{ unsettled: unknown[] }> {
    if (count > 0 && !refusal) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(waitMs, longestTimerMs))
        onIdle = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    clearInterval(sweep)
    const left = unsettled()
    items = {}
    queue.clear()
    for (const item of left) {
      clearTimeout(item.timer)
      item.reject(new ClientError('closed'))
    }
    await connection.end()
    await outbox?.close()
    return { unsettled: left.map(({ payload }) => JSON.parse(payload)) }
  }

  return {
    /**
     * Sends an event. Resolves with its report when the hub has published it; `warnings` says what is probably wrong.
     * Rejects with `EventRefused`, or with a `ClientError`.
     */
    publish: (event: Publishable) => submit(event, false),
    /** Asks the hub what it would do with an event. Resolves and rejects like `publish`; nothing is published. */
    check: (event: Publishable) => submit(event, true),
    /** The events that were in the outbox at the beginning. Who looks at them hears by `result` what the hub refuses. */
    get restored(): readonly Restored[] {
      worth?.heard()
      return restored
    },
    /**
     * Takes no more events, waits at most `waitMs` milliseconds (10,000) for the answers of the hub, and disconnects.
     * What is not settled then is in the answer, and its `publish` rejects with the code `closed`. It stays in the outbox.
     */
    close(waitMs = closeMs): Promise<{ unsettled: unknown[] }> {
      closing ??= end(waitMs)
      return closing
    },
  }
}

function newItem(
  place: number,
  payload: string,
  topic: string,
  resolve: (result: Report | Unknown) => void,
  reject: (error: Error) => void,
): Item {
  return {
    place,
    payload,
    topic,
    key: '',
    number: undefined,
    since: performance.now(),
    at: Date.now(),
    sends: 0,
    reports: 0,
    report: undefined,
    isAcknowledged: false,
    isSentAgain: false,
    timer: undefined,
    resolve,
    reject,
  }
}

/** By either clock: the monotonic one stands still while the machine sleeps, the other one may be set back. */
function isTooOld({ since, at }: Item): boolean {
  return Math.max(performance.now() - since, Date.now() - at) > longestWaitMs
}

/** No report can name with it what every object has. */
const keyOf = (hash: string, dryRun: boolean) => `${hash} ${dryRun}`

/** Throws `ClientError` with the name of the option and what is expected. */
function checkOptions(options: PublisherOptions): void {
  const { url, institution, reportTimeout = 1 } = options
  for (const name of ['url', 'username', 'password', 'institution'] as const) {
    if (options[name] === '') wrongOption(name, 'must be a text')
    checkLoginText(name, options[name])
  }
  checkUrl(url, ['mqtts://', 'wss://'])
  if (/[/+#\s]/.test(institution)) wrongOption('institution', 'must be urn:org:institution:…')
  if (!(reportTimeout > 0 && reportTimeout <= longestTimerMs))
    wrongOption('reportTimeout', 'must be milliseconds above 0')
}
