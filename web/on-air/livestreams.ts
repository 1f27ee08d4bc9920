import { batch, computed, type Signal, signal } from '@preact/signals'
import { eventIn, isRecord } from '../../client/kind.ts'
import { after, controlsOn, type NowPlaying, nothing } from '../../client/now-playing.ts'
import { type ConnectionState, connect } from '../live/connection.ts'
import { problemOf } from '../page/ask.ts'
import { now } from '../page/clock.ts'
import { askAgain } from './ask-again.ts'
import { followSilences } from './silences.ts'

/** A livestream as the pages show it. */
export interface Livestream {
  id: string
  title: string
  institutionId: string
  /** What the livestream plays now. A change draws the card of this livestream again. */
  now: Signal<NowPlaying>
}

export interface Institution {
  id: string
  title: string
  acronym: string
}

/** All livestreams by their ids: those of the feed, and others that have events. */
export const livestreams = signal<ReadonlyMap<string, Livestream>>(new Map())
export const institutions = signal<readonly Institution[]>([])
export const connection = signal<{ state: ConnectionState; reason: string }>({
  state: 'connecting',
  reason: '',
})
/** Whether the list of livestreams has been read. */
export const isListed = signal(false)
/** Why the list could not be read. Empty: the page waits for the first answer, or has the list. */
export const listProblem = signal('')
/** The time at the hub, set every few seconds. */
export const ticker = signal(now())
/** Livestreams for which a traffic announcement or another control state is on. */
export const announcing = computed(() =>
  [...livestreams.value.values()].filter((one) => controlsOn(one.now.value, ticker.value).length > 0),
)

const tickMs = 5_000
/** Messages that come within this time are shown together, milliseconds: a new connection brings thousands. */
const togetherMs = 50
const relistMs = 5 * 60 * 1000

/** Follows all livestreams until the returned function is called. */
export function follow(): () => void {
  const timer = setInterval(() => {
    ticker.value = now()
  }, tickMs)
  const endListing = followList()
  const endSilences = followSilences()
  let waiting: [topic: string, payload: Uint8Array][] = []
  const connected = connect({
    filters: ['radio/#'],
    received(topic, payload) {
      if (waiting.length === 0) setTimeout(show, togetherMs)
      waiting.push([topic, payload])
    },
    changed(state, reason) {
      connection.value = { state, reason }
    },
  })

  return () => {
    clearInterval(timer)
    endListing()
    endSilences()
    connected.close()
  }

  function show(): void {
    const messages = waiting
    waiting = []
    batch(() => {
      for (const [topic, payload] of messages) take(topic, payload)
      if (added.size > 0) livestreams.value = new Map([...livestreams.value, ...added])
      added.clear()
      ticker.value = now()
    })
  }
}

/** Unlisted livestreams that are not shown yet. Many may come at once. */
const added = new Map<string, Livestream>()

function take(topic: string, payload: Uint8Array): void {
  const [, id = ''] = topic.split('/')
  const event = eventIn(payload)
  if (id === '' || event === undefined) return
  const livestream = livestreams.value.get(id) ?? added.get(id) ?? unlisted(id)
  livestream.now.value = after(livestream.now.value, event, now())
}

/** A livestream that the feed does not list. */
function unlisted(id: string): Livestream {
  const livestream = { id, title: id, institutionId: '', now: signal(nothing) }
  added.set(id, livestream)
  return livestream
}

/** Reads the list of livestreams again and again, until the returned function is called. */
function followList(): () => void {
  return askAgain('/livestreams', relistMs, (answer) => {
    const isGood = answer.status === 200
    if (isGood) list(answer.body)
    listProblem.value = isGood ? '' : problemOf(answer)
  })
}

/**
 * Shows the livestreams of a list, with the events that the page already has. Other livestreams stay if they have
 * events.
 */
function list(body: Record<string, unknown>): void {
  const listed = [body.livestreams].flat().filter(isRecord)
  const known = livestreams.value
  const next = listed.map(({ id, title, institutionId }): [string, Livestream] => {
    const key = String(id)
    const shown = known.get(key)?.now ?? signal(nothing)
    return [key, { id: key, title: String(title), institutionId: String(institutionId), now: shown }]
  })
  const ids = new Set(next.map(([id]) => id))
  const unlisted = [...known].filter(([id, one]) => !ids.has(id) && one.now.value !== nothing)
  batch(() => {
    institutions.value = [body.institutions]
      .flat()
      .filter(isRecord)
      .map(({ id, title, acronym }) => ({ id: String(id), title: String(title), acronym: String(acronym) }))
    livestreams.value = new Map([
      ...next,
      ...unlisted.map(([id, one]) => [id, { ...one, institutionId: '' }] as const),
    ])
    isListed.value = true
  })
}
