import { eventKinds } from '../../client/events.ts'
import { isRecord } from '../../client/kind.ts'
import { controlsOn, type Track, upNext } from '../../client/now-playing.ts'
import type { Asked } from './attributes.ts'
import { findLivestream } from './find-livestream.ts'
import { type Programme, settle, silent, staysUntil, take } from './programme.ts'
import { tell } from './tell.ts'

/** What an element shows. */
export interface Shown {
  /** The name of the livestream. */
  title: string
  playing: Track | undefined
  next: Track | undefined
  /** Names of the control states that are on. */
  announcements: readonly string[]
}

type Draw = (shown: Shown) => void

interface SharedLivestream {
  id: string
  title: string
  /** The hub has it, and everybody may read it. */
  isFound: boolean
  finding: Promise<void> | undefined
  /** Not to ask for it again before, milliseconds since the epoch. */
  askAt: number
  programme: Programme
  viewers: Set<Draw>
}

/** Changes within this time are made together, milliseconds. */
const togetherMs = 20
/** Livestreams of a stream: the hub takes no more. */
const mostLivestreams = 200
const tickMs = 15_000
/** A stream without an event for so long may be dead: an `EventSource` sees no comments. Milliseconds. */
const quietMs = 600_000
/** Longest time between two looks at the clock, milliseconds. */
const lookMs = 60_000
/** Longest pause after failures, milliseconds. */
const longestPauseMs = 60_000

const streams = new Map<string, ReturnType<typeof createSharedStream>>()

/** Draws what a livestream shows, whenever it changes, until the returned function is called. */
export function watch({ hub, delay, livestream }: Asked, draw: Draw): () => void {
  const key = `${delay} ${hub}`
  const stream = streams.get(key) ?? createSharedStream(hub, delay, () => streams.delete(key))
  streams.set(key, stream)
  return stream.add(livestream, draw)
}

/**
 * The one stream of a page from a hub with a delay: browsers open six connections to a host. It is open while the page is
 * visible. `ended`: nobody watches any more.
 */
function createSharedStream(hub: string, delay: number, ended: () => void) {
  const livestreams = new Map<string, SharedLivestream>()
  let source: EventSource | undefined
  /** The livestreams of which everything up to `lastEventId` has come. */
  let followed = new Set<string>()
  let lastEventId = ''
  /** The state of all livestreams has come. */
  let isComplete = false
  /** By how much the time that the stream shows is ahead of the clock of this machine, milliseconds. */
  let aheadMs = -1000 * delay
  let failures = 0
  let turn = 0
  let heardAt = 0
  let tickedAt = Date.now()
  let renewal: ReturnType<typeof setTimeout> | undefined
  let change: ReturnType<typeof setTimeout> | undefined
  const ticks = setInterval(tick, tickMs)
  document.addEventListener('visibilitychange', renewSoon)
  addEventListener('online', reopen)

  return {
    add(id: string, draw: Draw): () => void {
      const livestream = livestreams.get(id) ?? unknown(id)
      livestreams.set(id, livestream)
      livestream.viewers.add(draw)
      renewSoon()
      return () => {
        livestream.viewers.delete(draw)
        renewSoon()
      }
    },
  }

  function renewSoon(): void {
    clearTimeout(renewal)
    renewal = setTimeout(() => void renew(), togetherMs)
  }

  /** Opens the stream, or another one if livestreams have been added. Closes it if nobody looks. */
  async function renew(): Promise<void> {
    clearTimeout(renewal)
    turn += 1
    const mine = turn
    for (const { id, viewers } of livestreams.values()) {
      if (viewers.size > 0) continue
      livestreams.delete(id)
      followed.delete(id)
    }
    if (livestreams.size === 0) return end()
    if (document.hidden) return close()
    await Promise.all([...livestreams.values()].map(find))
    if (mine !== turn) return
    const all = [...livestreams.values()]
    const wanted = all.filter(({ isFound }) => isFound).map(({ id }) => id)
    if (wanted.length > mostLivestreams) tell(`only ${mostLivestreams} livestreams of a hub`)
    if (wanted.length > 0) open(wanted.slice(0, mostLivestreams))
    else close()
    const missing = all.filter(({ isFound }) => !isFound)
    if (missing.length > 0) renewLater(Math.min(...missing.map(({ askAt }) => askAt)))
    draw()
  }

  function find(livestream: SharedLivestream): Promise<void> | undefined {
    if (livestream.isFound || livestream.askAt > Date.now()) return undefined
    livestream.finding ??= (async () => {
      const { title, isAbsent, pauseMs } = await findLivestream(hub, livestream.id)
      livestream.finding = undefined
      livestream.isFound = title !== undefined
      livestream.title = title ?? livestream.title
      livestream.askAt = Date.now() + pauseMs
      if (isAbsent) livestream.programme = silent
    })()
    return livestream.finding
  }

  function open(ids: readonly string[]): void {
    const isNew = ids.some((id) => !followed.has(id))
    if (source && !isNew) return
    close()
    if (isNew) lastEventId = ''
    followed = new Set(ids)
    heardAt = Date.now()
    const query = new URLSearchParams(ids.map((id) => ['livestream', id]))
    if (delay > 0) query.set('delay', String(delay))
    if (lastEventId !== '') query.set('lastEventId', lastEventId)
    const opened = new EventSource(`${hub}/stream?${query}`)
    source = opened
    opened.onopen = () => {
      // Without an id comes the state.
      if (lastEventId === '') begin()
    }
    opened.onerror = () => {
      if (opened.readyState === EventSource.CLOSED) failed()
    }
    hear('missed', begin)
    hear('ready', ({ at }) => {
      aheadMs = Date.parse(String(at)) - Date.now()
      isComplete = true
      failures = 0
    })
    for (const { kind } of Object.values(eventKinds)) {
      hear(kind, ({ livestreamId, event }) => {
        const livestream = livestreams.get(String(livestreamId))
        if (livestream) livestream.programme = take(livestream.programme, event)
      })
    }

    function hear(name: string, told: (about: Record<string, unknown>) => void): void {
      opened.addEventListener(name, (message: MessageEvent<string>) => {
        heardAt = Date.now()
        lastEventId = message.lastEventId
        const about: unknown = JSON.parse(message.data)
        if (isRecord(about)) told(about)
        draw()
      })
    }
  }

  /** The state follows. What the elements show stays until it is complete. */
  function begin(): void {
    isComplete = false
    for (const livestream of livestreams.values()) livestream.programme = silent
  }

  /** The hub gives no stream: perhaps it does not have a livestream any more, or no public page. */
  function failed(): void {
    close()
    for (const livestream of livestreams.values()) livestream.isFound = false
    renewLater(0)
  }

  /** Not before `askAt`, and after pauses that grow. At random: many pages lose the hub together. */
  function renewLater(askAt: number): void {
    failures += 1
    const pauseMs = Math.min(1000 * 2 ** failures, longestPauseMs) * (0.5 + Math.random() / 2)
    clearTimeout(renewal)
    renewal = setTimeout(() => void renew(), Math.max(askAt - Date.now(), pauseMs))
  }

  function tick(): void {
    const now = Date.now()
    const hasSlept = now - tickedAt > 3 * tickMs
    tickedAt = now
    if (hasSlept || (source && now - heardAt > quietMs)) reopen()
  }

  /** A connection does not notice that the machine has slept, or that the network is another one. */
  function reopen(): void {
    close()
    void renew()
  }

  function draw(): void {
    clearTimeout(change)
    if (!isComplete) return
    const now = Date.now() + aheadMs
    let until = now + lookMs
    for (const livestream of livestreams.values()) {
      livestream.programme = settle(livestream.programme, now)
      until = Math.min(until, staysUntil(livestream.programme, now))
      const { shown } = livestream.programme
      const announcements = controlsOn(shown, now).map(({ name }) => name)
      const { title } = livestream
      for (const each of livestream.viewers)
        each({ title, playing: shown.playing, next: upNext(shown), announcements })
    }
    change = setTimeout(draw, until - now)
  }

  function close(): void {
    source?.close()
    source = undefined
  }

  function end(): void {
    close()
    clearInterval(ticks)
    clearTimeout(renewal)
    clearTimeout(change)
    document.removeEventListener('visibilitychange', renewSoon)
    removeEventListener('online', reopen)
    ended()
  }
}

function unknown(id: string): SharedLivestream {
  return {
    id,
    title: '',
    isFound: false,
    finding: undefined,
    askAt: 0,
    programme: silent,
    viewers: new Set(),
  }
}
