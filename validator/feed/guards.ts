import type { Feed } from './feed.ts'
import { type FeedProblem, refuse } from './refusals.ts'

/** A feed that lost more than this share of the livestreams is refused as an accident (design.md §6). */
const shrinkGuard = 0.2
/** A feed that grew by more than this share, and by more than this number, is refused as an accident. */
const growthGuard = { share: 0.5, count: 20 }
/** For so many refreshes a feed is held back in which the institution of a connected publisher is missing. */
const mostHeld = 3

/** Names in a problem. */
const mostNamed = 3

/** What guards know besides the feeds. */
export interface GuardedBy {
  /** Ids of livestreams that no feed may lose. */
  canaries: readonly string[]
  /** Institutions of the publishers that are connected. */
  connected: readonly string[]
  /** How many refreshes in a row have held the feed back for an institution. */
  held: number
}

/**
 * Why a good feed waits for a person, who can force it; undefined: it does not. Growth and institutions are compared with
 * the last good feed of the same source, canaries with the feed in use: one that it lacks as well is ignored.
 */
export function whyGuarded(
  next: Feed,
  { inUse, lastGood }: { inUse: Feed | undefined; lastGood: Feed | undefined },
  { canaries, connected, held }: GuardedBy,
): FeedProblem | undefined {
  if (lastGood) {
    const numbers = `from ${lastGood.size} to ${next.size} livestreams`
    if (next.size < lastGood.size * (1 - shrinkGuard)) {
      return refuse('shrink', `shrinks ${numbers}, more than 20 %`)
    }
    const grown = next.size - lastGood.size
    if (grown > growthGuard.count && grown > lastGood.size * growthGuard.share) {
      return refuse('growth', `grows ${numbers}, more than 50 %`)
    }
  }
  const lost = canaries.filter((id) => inUse?.byId.get(id) && !next.byId.get(id))
  if (lost.length > 0) return refuse('canary', `lacks ${named(lost)} of feedCanaries`)
  const missing = connected.filter((id) => lastGood?.hasInstitution(id) && !next.hasInstitution(id))
  if (missing.length > 0 && held < mostHeld) {
    const left = mostHeld - held - 1
    const when =
      left === 0
        ? 'the next refresh takes it'
        : `held back for ${left} more ${left === 1 ? 'refresh' : 'refreshes'}`
    return refuse('institution', `lacks ${named(missing)}, whose publishers are connected; ${when}`)
  }
  return undefined
}

function named(ids: readonly string[]): string {
  const first = ids.slice(0, mostNamed).join(', ')
  return ids.length > mostNamed ? `${first} and ${ids.length - mostNamed} more` : first
}
