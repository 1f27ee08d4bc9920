import type { Change, Store, Told } from '../../store/store.ts'
import { type Feed, indexed, type Livestream, type Livestreams } from './feed.ts'

interface Former extends Livestream {
  /** When the hub adopted a feed without this livestream or external id, milliseconds since the epoch. */
  droppedAt: number
}

/** Maximum number of former external ids of one livestream. Older ones have no owner. */
const maxNames = 20

/**
 * Keeps livestreams that dropped out of the feed, and former external ids (names) of listed livestreams. Over HTTPS, a
 * former name still belongs to its last owner.
 *
 * One commit stores the entries below `place` together with the feed. Keys:
 * - of a dropped livestream: its id
 * - of a former name: id and external id
 */
export async function createFormerLivestreams(store: Store, place: string) {
  const prefix = `${place}former/`
  const kept = new Map<string, Former>()
  for await (const [key, value] of store.range(prefix)) take(key, value)
  let index = indexed(kept)
  let isStale = false
  store.onOthers(place, heard)

  return {
    livestreams: {
      byId: kept,
      byExternalId: { get: (externalId) => lastOf(current().byExternalId.get(externalId) ?? []) },
      likeExternalId: (externalId) => current().likeExternalId(externalId),
    } satisfies Livestreams,

    /** The changes to store when the feed `next` replaces `before`. Call `show` when they are stored. */
    change(before: Feed | undefined, next: Feed, now: number): { changes: Change[]; show(): void } {
      const removed = new Set<string>()
      const added = new Map<string, Former>()
      // If the key exists, another node with a newer feed has stored the entry. Keep that entry.
      const add = (key: string, former: Former) => kept.has(key) || added.set(key, former)
      for (const livestream of before?.all() ?? []) {
        const former = { ...livestream, droppedAt: now }
        const listed = next.byId.get(livestream.id)
        if (!listed) add(livestream.id, former)
        else if (listed.externalId !== livestream.externalId) add(keyOfName(livestream), former)
      }
      for (const [key, former] of kept) {
        const listed = next.byId.get(former.id)
        if (!listed) continue
        const hasNameAgain = listed.externalId === former.externalId
        if (hasNameAgain || key === former.id) removed.add(key)
        if (!hasNameAgain && key === former.id) add(keyOfName(former), former)
      }
      for (const key of excessNames([...kept, ...added].filter(([key]) => !removed.has(key)))) {
        if (!added.delete(key)) removed.add(key)
      }
      return {
        changes: [
          ...[...removed].map((key) => ({ del: prefix + key })),
          ...[...added].map(([key, former]) => ({ put: prefix + key, value: JSON.stringify(former) })),
        ],
        show() {
          for (const key of removed) kept.delete(key)
          for (const [key, former] of added) kept.set(key, former)
          isStale = true
        },
      }
    },
  }

  function current(): Livestreams<Former> {
    if (isStale) index = indexed(kept)
    isStale = false
    return index
  }

  function heard(change: Told): void {
    if ('put' in change && change.put.startsWith(prefix)) take(change.put, change.value)
    if ('del' in change && change.del.startsWith(prefix)) kept.delete(change.del.slice(prefix.length))
    isStale = true
  }

  function take(key: string, value: Buffer): void {
    kept.set(key.slice(prefix.length), JSON.parse(value.toString()))
  }
}

/** Returns the keys of the names to remove: each livestream keeps its newest `maxNames`. */
function excessNames(formers: readonly [key: string, former: Former][]): string[] {
  const counts = new Map<string, number>()
  const newestFirst = formers
    .filter(([key, { id }]) => key !== id)
    .sort(([, a], [, b]) => b.droppedAt - a.droppedAt)
  return newestFirst.flatMap(([key, { id }]) => {
    const count = (counts.get(id) ?? 0) + 1
    counts.set(id, count)
    return count > maxNames ? [key] : []
  })
}

function keyOfName({ id, externalId }: Livestream): string {
  return `${id}/${encodeURIComponent(externalId)}`
}

/** If several livestreams had an external id in turn, it belongs to the last of them. */
function lastOf(formers: readonly Former[]): readonly Livestream[] {
  const last = Math.max(...formers.map(({ droppedAt }) => droppedAt))
  return formers.filter(({ droppedAt }) => droppedAt === last)
}
