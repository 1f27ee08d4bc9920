import { createPacing } from '../../listener/pacing.ts'
import type { OnAir } from '../../on-air/on-air.ts'
import type { View } from '../../on-air/view.ts'
import type { Feed } from '../../validator/feed/feed.ts'
import { type Kept, keepText } from '../kept.ts'

/** The answer for a livestream, as one view shows it. */
interface KeptNow {
  feed: Feed | undefined
  made: Promise<{ kept: Kept; until: number } | undefined>
}

/** Answers are kept for so many livestreams, those that changed longest ago are dropped. */
const mostKept = 10_000
/** So many livestreams are looked up in one turn of the event loop: an answer may have hundreds. */
const perTurn = 8
/** Answers for so many views are kept of one livestream. */
const mostViews = 20

/**
 * Returns what livestreams show, as answers. Those of the present are kept until they change: pages ask for the same
 * ones every few seconds. The list is empty if the journal does not reach back as far as `delayMs`.
 */
export function createKeptNow({
  onAir,
  feed,
}: {
  onAir: Pick<OnAir, 'now' | 'momentBefore' | 'onChange'>
  feed: () => Feed | undefined
}) {
  const lookups = createPacing(perTurn)
  const byLivestream = new Map<string, Map<string, KeptNow>>()
  onAir.onChange((livestreamId) => byLivestream.delete(livestreamId))

  return async (ids: readonly string[], view: View, delayMs: number): Promise<(Kept | undefined)[]> => {
    if (delayMs === 0) return Promise.all(ids.map((id) => present(id, view)))
    const moment = await onAir.momentBefore(delayMs)
    if (!moment) return []
    const found: (Kept | undefined)[] = []
    for (const id of ids) {
      await lookups.turn()
      const now = await onAir.now(id, view, moment)
      found.push(now && keepText(now.text))
    }
    return found
  }

  async function present(id: string, view: View): Promise<Kept | undefined> {
    const views = byLivestream.get(id)
    const known = views?.get(view.key)
    if (known && known.feed === feed()) {
      const made = await known.made
      if (made === undefined || Date.now() < made.until) return made?.kept
      views?.delete(view.key)
    }
    const made = make(id, view)
    keep(id, view, { feed: feed(), made })
    return (await made)?.kept
  }

  async function make(id: string, view: View) {
    await lookups.turn()
    const moment = await onAir.momentBefore(0)
    const now = moment && (await onAir.now(id, view, moment))
    return now && { kept: keepText(now.text), until: now.until }
  }

  function keep(id: string, view: View, kept: KeptNow): void {
    const views = byLivestream.get(id) ?? new Map<string, KeptNow>()
    if (views.size >= mostViews) views.clear()
    views.set(view.key, kept)
    byLivestream.set(id, views)
    const [oldest] = byLivestream.keys()
    if (byLivestream.size > mostKept && oldest !== undefined) byLivestream.delete(oldest)
    // What cannot be read is not kept.
    kept.made.catch(() => views.delete(view.key))
  }
}
