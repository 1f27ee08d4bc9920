import { useComputed } from '@preact/signals'
import type { Track } from '../live/now-playing.ts'
import { now } from '../page/clock.ts'
import { ticker } from './livestreams.ts'
import { clockTime, duration, relative } from './times.ts'

/** Times of bars count from here, in seconds: CSS has no room for those of the epoch. */
const begin = now()

/** Moves all bars of the page to where they are now. */
export function moveBars(): void {
  document.documentElement.style.setProperty('--now', String(seconds(now())))
}

function seconds(time: number): number {
  return (time - begin) / 1000
}

/** How far a title is. CSS computes the bar from one number for the whole page: nothing is drawn again while it plays. */
export function Progress({ track }: { track: Track }) {
  const { time, length } = track
  const age = useComputed(() => {
    const isOver = ticker.value > time + length + overMs
    return isOver ? `over since ${clockTime(time + length)}` : relative(time, ticker.value)
  })
  return (
    <div class="progress">
      <div class="bar" aria-hidden="true">
        <i style={{ '--start': seconds(time), '--length': length / 1000 }} />
      </div>
      <p>
        <time dateTime={new Date(time).toISOString()}>{clockTime(time)}</time>
        <span>{age}</span>
        <span class="length">{duration(length)}</span>
      </p>
    </div>
  )
}

/** A title counts as over only this much later, milliseconds: its length is an estimate. */
const overMs = 60_000
