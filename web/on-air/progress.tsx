import { computed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { Track } from '../../client/now-playing.ts'
import { now } from '../page/clock.ts'
import { ticker } from './livestreams.ts'
import { clockTime, clockTimeOn, duration, relative } from './times.ts'

/** All progress bars count seconds from this moment: seconds since the epoch are too large for CSS. */
const begin = now()

/** Moves all bars of the page to the present time. */
export function moveBars(): void {
  document.documentElement.style.setProperty('--now', String(seconds(now())))
}

function seconds(time: number): number {
  return (time - begin) / 1000
}

/** How much of a title has played. CSS moves all bars by `--now`: no script draws them again. */
export function Progress({ track }: { track: Track }) {
  const { time, length } = track
  // Not `useComputed`: it would keep the text of the former track until the next tick.
  const age = useMemo(() => computed(() => ageOf(time, length)), [time, length])
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

function ageOf(time: number, length: number): string {
  const isOver = ticker.value > time + length + overMs
  return isOver ? `over since ${clockTimeOn(time + length, ticker.value)}` : relative(time, ticker.value)
}

/**
 * A title counts as over only this long after its estimated end, milliseconds. The length is an estimate, so the title
 * may still play.
 */
const overMs = 60_000
