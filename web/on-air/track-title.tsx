import type { NowPlaying } from '../../client/now-playing.ts'
import { connection } from './livestreams.ts'

/** The title and artist that play now. Without a connection, the page does not know whether there is a title. */
export function TrackTitle({ playing }: { playing: NowPlaying['playing'] }) {
  if (!playing) return <p class="artist">{connection.value.state === 'live' ? 'No title yet' : '…'}</p>
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
