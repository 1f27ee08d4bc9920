import { useComputed } from '@preact/signals'
import { type Livestream, ticker } from './livestreams.ts'
import { silentSince } from './silences.ts'
import { clockTimeOn } from './times.ts'

/** The mark of a livestream that is silent for longer than usual at this hour. */
export function Silence({ livestream: { id, now } }: { livestream: Livestream }) {
  // Computed as a text: other livestreams are silent, and the time goes on, without a change here.
  const shown = useComputed(() => {
    const since = silentSince(id, now.value.playing)
    return since === undefined ? '' : `Silent since ${clockTimeOn(since, ticker.value)}`
  })
  if (shown.value === '') return null
  return (
    <p class="silence" title="No event for longer than usual at this hour">
      {shown.value}
    </p>
  )
}
