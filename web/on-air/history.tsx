import { batch, type Signal, useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { isRecord, kindOf } from '../../client/kind.ts'
import { type Track, trackOf } from '../../client/now-playing.ts'
import { parseInstant } from '../../event/format.ts'
import { problemOf } from '../page/ask.ts'
import { askAsUser, offerLogIn, user } from '../page/session.ts'
import { connection, type Livestream } from './livestreams.ts'
import { clockTime, dayOf, duration } from './times.ts'

/** The titles before the present one, from the journal and from live events. */
export function History({ livestream }: { livestream: Livestream }) {
  const { id, now } = livestream
  const tracks = useSignal<readonly Track[]>([])
  const next = useSignal<number | null>(null)
  const problem = useSignal('')
  const isBusy = useSignal(false)
  const isRead = useSignal(false)
  /** Whether the newest page must be read: at first, and after the connection was lost. */
  const isStale = useRef(true)
  /**
   * The time of the newest title when the connection was lost. Up to this time, the list has no gap. Undefined: at that
   * moment, no title had been read.
   */
  const covered = useRef<number | undefined>(undefined)
  const mayRead = user.value?.permissions.includes('subscribe') ?? false
  /** Without the present title, and without titles that the journal has and the connection has not brought yet. */
  const earlier = useComputed(() => {
    const { playing } = now.value
    return tracks.value.filter((one) => !playing || (one.id !== playing.id && one.time <= playing.time))
  })

  useSignalEffect(() => {
    const { playing } = now.value
    if (playing) add(tracks, [playing])
  })
  const isLive = connection.value.state === 'live'
  useEffect(() => {
    if (!isLive) {
      // While the connection is lost, titles may come and go.
      isStale.current = true
      covered.current = isRead.value ? tracks.value[0]?.time : undefined
    }
    if (mayRead && (isLive || !isRead.value)) void load()
  }, [mayRead, isLive])

  /** Reads pages until enough titles are found: most events may be radiotext. */
  async function load(): Promise<void> {
    if (isBusy.value) return
    isBusy.value = true
    const before = tracks.value.length
    for (let asked = 0; asked < mostAtOnce && tracks.value.length < before + leastShown; asked++) {
      const isNewest = isStale.current
      isStale.current = false
      const from = isNewest || next.value === null ? '' : `&before=${next.value}`
      const answer = await askAsUser('GET', `/livestreams/${encodeURIComponent(id)}/events?limit=200${from}`)
      if (answer.status !== 200) {
        isStale.current ||= isNewest
        problem.value = problemOf(answer)
        break
      }
      const page = tracksIn(answer.body.events)
      // The newest page reaches titles from before the connection was lost: there is no gap.
      const isJoined = isNewest && page.some(({ time }) => time <= (covered.current ?? -Infinity))
      batch(() => {
        problem.value = ''
        isRead.value = true
        if (!isJoined) next.value = typeof answer.body.next === 'number' ? answer.body.next : null
        add(tracks, page)
      })
      if (isJoined || next.value === null) break
    }
    isBusy.value = false
    // The connection was lost and came back during the last request. Titles may be missing, so the newest page is read
    // again.
    if (isStale.current && problem.value === '' && connection.peek().state === 'live') void load()
  }

  return (
    <section class="history" aria-labelledby="history">
      <h2 id="history">Before</h2>
      {earlier.value.length > 0 && (
        <ol>
          {earlier.value.map((track, index) => (
            <Row
              key={track.id}
              track={track}
              above={earlier.value[index - 1]}
              until={tracks.value[tracks.value.indexOf(track) - 1]?.time}
            />
          ))}
        </ol>
      )}
      {earlier.value.length === 0 && isRead.value && !isBusy.value && mayRead && problem.value === '' && (
        <p class="muted">Nothing that the hub still has.</p>
      )}
      {!mayRead && (
        <p class="muted">
          What was on before this page was opened is for users{' '}
          {user.value ? (
            'with the permission to subscribe.'
          ) : (
            <>
              of the hub.{' '}
              <button type="button" class="link" onClick={offerLogIn}>
                Log in
              </button>
            </>
          )}
        </p>
      )}
      {problem.value !== '' && <p class="problem">{problem.value}</p>}
      {(problem.value !== '' || (next.value !== null && tracks.value.length < mostKept)) && (
        <button type="button" aria-disabled={isBusy.value} onClick={() => void load()}>
          {isBusy.value ? 'Loading…' : problem.value === '' ? 'Show more' : 'Try again'}
        </button>
      )}
    </section>
  )
}

const mostAtOnce = 5
const leastShown = 20
/** Maximum number of titles that are kept: the page may stay open for weeks. */
const mostKept = 2_000

/** `until`: when the next title began, which is the end of this one (service.md §2.1). Undefined: nothing came after it. */
function Row({ track, above, until }: { track: Track; above: Track | undefined; until: number | undefined }) {
  const { time, title, artist, length } = track
  const isNewDay = above !== undefined && dayOf(above.time) !== dayOf(time)
  return (
    <>
      {isNewDay && <li class="day">{dayOf(time)}</li>}
      <li>
        <time dateTime={new Date(time).toISOString()}>{clockTime(time)}</time>
        <span class="line">
          <b dir="auto">{title}</b>
          {artist !== '' && <span dir="auto">{artist}</span>}
        </span>
        <span class="length">{duration(until === undefined ? length : until - time)}</span>
      </li>
    </>
  )
}

function add(tracks: Signal<readonly Track[]>, more: readonly Track[]): void {
  const known = new Set(tracks.peek().map(({ id }) => id))
  const added = more.filter(({ id }) => !known.has(id))
  if (added.length === 0) return
  tracks.value = [...tracks.peek(), ...added].sort((a, b) => b.time - a.time).slice(0, mostKept)
}

function tracksIn(events: unknown): Track[] {
  const found = (Array.isArray(events) ? events : []).filter(isRecord).map(({ event }) => event)
  return found.filter(isRecord).flatMap((event) => {
    const time = parseInstant(String(event.start))
    return kindOf(event)?.kind === 'playing' && time !== undefined ? [trackOf(event, time)] : []
  })
}
