import { useComputed } from '@preact/signals'
import type { Track } from '../live/now-playing.ts'
import { now } from '../page/clock.ts'
import { ticker } from './livestreams.ts'
import { clockTime, duration, relative } from './times.ts'

/** How far a title is. CSS moves the bar: nothing is drawn again while it plays. */
export function Progress({ track }: { track: Track }) {
  const { time, length } = track
  const age = useComputed(() => {
    const isOver = ticker.value > time + length + overMs
    return isOver ? `over since ${clockTime(time + length)}` : relative(time, ticker.value)
  })
  return (
    <div class="progress">
      <div class="bar" aria-hidden="true">
        <i
          key={`${track.id} ${time}`}
          style={{ animationDuration: `${length}ms`, animationDelay: `${time - now()}ms` }}
        />
      </div>
      <p>
        <time dateTime={new Date(time).toISOString()}>{clockTime(time)}</time>
        <span>{age}</span>
        <span class="length">{duration(length)}</span>
      </p>
    </div>
  )
}

/** The length is an estimate, milliseconds. */
const overMs = 60_000
