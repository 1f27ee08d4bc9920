import { after, controlsOn, type NowPlaying, nothing, type Track, upNext } from './now-playing.ts'
import { longestTimerMs } from './pause.ts'

/** What each livestream shows now. A livestream of which nothing is known is not in it. */
export interface NowPlayingOfAll {
  readonly size: number
  get(livestreamId: string): NowPlaying | undefined
  [Symbol.iterator](): Iterator<[livestreamId: string, shown: NowPlaying]>
}

/** The largest state in memory. `characters`: those of all texts together. A hub has at most 50,000 livestreams. */
const usualLimits = { livestreams: 100_000, characters: 64 * 1024 * 1024 }

/**
 * The state of every livestream: the newest by event time, control states until their `validUntil`, `next` until it
 * plays. Calls `changed` with what a livestream shows, also when a control state ends by its time. Where a hub tells of
 * more than `limits`, those that changed longest ago are left out; `full` is called at the first one.
 */
export function createNowPlaying(
  changed: (livestreamId: string, shown: NowPlaying) => void,
  full: () => void,
  limits = usualLimits,
) {
  /** In the order of their last changes. */
  const known = new Map<string, NowPlaying>()
  let characters = 0
  let wasFull = false
  /** When the next control state of a livestream ends. */
  const ends = new Map<string, ReturnType<typeof setTimeout>>()

  return {
    get size() {
      return known.size
    },
    get(livestreamId: string): NowPlaying | undefined {
      const state = known.get(livestreamId)
      return state && shownOf(state)
    },
    *[Symbol.iterator](): Generator<[string, NowPlaying], undefined> {
      for (const [livestreamId, state] of known) yield [livestreamId, shownOf(state)]
    },
    take(livestreamId: string, event: unknown): void {
      const before = known.get(livestreamId) ?? nothing
      const state = after(before, event, Date.now())
      if (state === before) return
      forget(livestreamId)
      known.set(livestreamId, state)
      characters += sizeOf(livestreamId, state)
      makeRoom()
      if (state.controls !== before.controls) waitForEnd(livestreamId, state)
      changed(livestreamId, shownOf(state))
    },
    close(): void {
      for (const timer of ends.values()) clearTimeout(timer)
      ends.clear()
    },
  }

  function forget(livestreamId: string): void {
    const state = known.get(livestreamId)
    if (state === undefined) return
    known.delete(livestreamId)
    characters -= sizeOf(livestreamId, state)
  }

  /** The newest one stays, however large it is. */
  function makeRoom(): void {
    for (const oldest of known.keys()) {
      if ((known.size <= limits.livestreams && characters <= limits.characters) || known.size === 1) return
      forget(oldest)
      clearTimeout(ends.get(oldest))
      ends.delete(oldest)
      if (!wasFull) full()
      wasFull = true
    }
  }

  function waitForEnd(livestreamId: string, state: NowPlaying): void {
    clearTimeout(ends.get(livestreamId))
    ends.delete(livestreamId)
    const now = Date.now()
    const [first] = controlsOn(state, now).sort((a, b) => a.validUntil - b.validUntil)
    if (first === undefined) return
    const end = () => {
      const present = known.get(livestreamId) ?? nothing
      waitForEnd(livestreamId, present)
      if (first.validUntil <= Date.now()) changed(livestreamId, shownOf(present))
    }
    // A timer may fire within the millisecond before.
    ends.set(livestreamId, setTimeout(end, Math.min(first.validUntil - now + 1, longestTimerMs)))
  }
}

/** Characters of all texts of a livestream. */
function sizeOf(livestreamId: string, { text, controls, ...tracks }: NowPlaying): number {
  const names = controls.reduce((sum, { name }) => sum + name.length, livestreamId.length)
  return Object.values(tracks).reduce(
    (sum, track) => sum + sizeOfTrack(track),
    names + (text?.text.length ?? 0),
  )
}

function sizeOfTrack({ id, type, title, artist, item, cover = '' }: Track): number {
  return id.length + type.length + title.length + artist.length + item.length + cover.length
}

function shownOf(state: NowPlaying): NowPlaying {
  const { next, ...rest } = state
  const coming = upNext(state)
  return { ...rest, controls: controlsOn(state, Date.now()), ...(coming && { next: coming }) }
}
