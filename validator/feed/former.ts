import type { Change, Store, Told } from '../../store/store.ts'
import { type Feed, indexed, type Livestream, type Livestreams } from './feed.ts'

interface Former extends Livestream {
  /** When the feed was adopted that does not list it, milliseconds since the epoch. */
  droppedAt: number
}

/**
 * The livestreams that a feed listed once and the feed in use does not, as they were listed last: over HTTPS each
 * still belongs to its last owner. Stored below `place`, with the feed that dropped them.
 */
export async function createFormerLivestreams(store: Store, place: string) {
  const prefix = `${place}former/`
  const kept = new Map<string, Former>()
  for await (const [, value] of store.range(prefix)) take(value)
  let index = indexed(kept)
  let isStale = false
  store.watch?.(place, heard)

  return {
    livestreams: {
      byId: (id) => kept.get(id),
      byExternalId: (externalId) => lastOf(current().byExternalId(externalId)),
      likeExternalId: (externalId) => current().likeExternalId(externalId),
    } satisfies Livestreams,

    /** What changes when `next` takes the place of `before`; `show` when it is stored. */
    change(before: Feed | undefined, next: Feed, now: number): { changes: Change[]; show(): void } {
      const listedAgain = [...kept.keys()].filter((id) => next.byId(id))
      const dropped = [...(before?.all() ?? [])]
        // One that is known as dropped was dropped by a node that is ahead of this one, and knows better.
        .filter(({ id }) => !next.byId(id) && !kept.has(id))
        .map((livestream): Former => ({ ...livestream, droppedAt: now }))
      return {
        changes: [
          ...listedAgain.map((id) => ({ del: prefix + id })),
          ...dropped.map((livestream) => ({
            put: prefix + livestream.id,
            value: JSON.stringify(livestream),
          })),
        ],
        show() {
          for (const id of listedAgain) kept.delete(id)
          for (const livestream of dropped) kept.set(livestream.id, livestream)
          isStale = true
        },
      }
    },
  }

  function current(): Livestreams {
    if (isStale) index = indexed(kept)
    isStale = false
    return index
  }

  function heard(change: Told): void {
    if ('put' in change && change.put.startsWith(prefix)) take(change.value)
    if ('del' in change && change.del.startsWith(prefix)) kept.delete(change.del.slice(prefix.length))
    isStale = true
  }

  function take(value: Buffer): void {
    const livestream: Former = JSON.parse(value.toString())
    kept.set(livestream.id, livestream)
  }

  /** A feed may have given an external id to another livestream later: then that one is what it names. */
  function lastOf(livestreams: readonly Livestream[]): readonly Livestream[] {
    const droppedAt = ({ id }: Livestream) => kept.get(id)?.droppedAt ?? 0
    const last = Math.max(...livestreams.map(droppedAt))
    return livestreams.filter((livestream) => droppedAt(livestream) === last)
  }
}
