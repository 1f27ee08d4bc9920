import { after, controlsOn, type NowPlaying, nothing, upNext } from './now-playing.ts'

/** What each livestream shows now. A livestream of which nothing is known is not in it. */
export interface NowPlayingOfAll {
  readonly size: number
  get(livestreamId: string): NowPlaying | undefined
  [Symbol.iterator](): Iterator<[livestreamId: string, shown: NowPlaying]>
}

/** Longest wait of a timer, milliseconds. */
const longestTimer = 2 ** 31 - 1

/**
 * The state of every livestream: the newest by event time, control states until their `validUntil`, `next` until it
 * plays. Calls `changed` with what a livestream shows, also when a control state ends by its time.
 */
export function createNowPlaying(changed: (livestreamId: string, shown: NowPlaying) => void) {
  const known = new Map<string, NowPlaying>()
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
      known.set(livestreamId, state)
      if (state.controls !== before.controls) waitForEnd(livestreamId, state)
      changed(livestreamId, shownOf(state))
    },
    close(): void {
      for (const timer of ends.values()) clearTimeout(timer)
      ends.clear()
    },
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
    ends.set(livestreamId, setTimeout(end, Math.min(first.validUntil - now + 1, longestTimer)))
  }
}

function shownOf(state: NowPlaying): NowPlaying {
  const { next, ...rest } = state
  const coming = upNext(state)
  return { ...rest, controls: controlsOn(state, Date.now()), ...(coming && { next: coming }) }
}
