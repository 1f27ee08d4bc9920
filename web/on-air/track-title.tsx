import type { NowPlaying } from '../live/now-playing.ts'

/** The title and artist that play now, or `No title yet`. */
export function TrackTitle({ playing }: { playing: NowPlaying['playing'] }) {
  if (!playing) return <p class="artist">No title yet</p>
  return (
    <>
      <p class="title" dir="auto">
        {playing.title}
      </p>
      <p class="artist" dir="auto">
        {playing.artist}
      </p>
    </>
  )
}
