import { signal } from '@preact/signals'
import { isRecord } from '../../client/kind.ts'
import type { Track } from '../../client/now-playing.ts'
import { askAgain } from './ask-again.ts'

/** Livestreams that are silent for longer than usual: when the last event of each came, milliseconds since the epoch. */
export const silences = signal<ReadonlyMap<string, number>>(new Map())

const everyMs = 30_000
/** A track that starts so much later than the last event that the hub knew of has ended the silence, milliseconds. */
const newerMs = 5 * 60_000

/** Asks which livestreams are silent, again and again, until the returned function is called. */
export function followSilences(): () => void {
  return askAgain('/livestreams/silent', everyMs, (answer) => {
    // What is known stays while the hub does not answer, as all of the page does.
    if (answer.status === 200) silences.value = listed(answer.body)
  })
}

function listed(body: Record<string, unknown>): Map<string, number> {
  const all = [body.livestreams].flat().filter(isRecord)
  return new Map(all.map(({ id, since }) => [String(id), Date.parse(String(since))]))
}

/** Since when a livestream is silent. Undefined: it is not, by the hub or by what it plays since. */
export function silentSince(id: string, playing: Track | undefined): number | undefined {
  const since = silences.value.get(id)
  if (since === undefined || (playing && playing.time > since + newerMs)) return undefined
  return since
}
