import { type Feed, type Livestream, type LivestreamIndex, livestreamsOf } from './feed.ts'
import { openPacked, type Packed } from './packed.ts'

/** A livestream as a feed listed it that is in use no more. */
export interface Former extends Livestream {
  /** When the hub adopted a feed without this livestream or external id, milliseconds since the epoch. */
  droppedAt: number
  /** The feed went on listing the livestream, under another external id: this one is a former name. */
  isName?: true | undefined
}

/** Maximum number of former external ids of one livestream. Older ones have no owner. */
const maxNames = 20
/** Maximum number of livestreams and names that are kept, as many as a feed has at most. */
const maxFormer = 50_000

/**
 * Livestreams that dropped out of the feed, and former external ids (names) of listed livestreams. Over HTTPS, a former
 * name still belongs to its last owner.
 */
export function openFormer(packed: Packed): LivestreamIndex<Former> {
  const found = livestreamsOf(openPacked<Former>(packed))
  return {
    ...found,
    byExternalId: { get: (externalId) => lastOf(found.byExternalId.get(externalId) ?? []) },
  }
}

/**
 * The former livestreams after the feed `next` has replaced `before`: first those that drop out now, then those of `kept`. Of each
 * livestream the newest `maxNames` names stay, of all the newest `most`. One after the other: they may be many.
 */
export function* nextFormer(
  kept: Iterable<Former>,
  before: Iterable<Livestream>,
  next: Pick<Feed, 'byId'>,
  now: number,
  most = maxFormer,
): Generator<Former> {
  const names = new Map<string, number>()
  let left = most
  for (const former of formersOf(kept, before, next, now)) {
    if (left === 0) return
    if (former.isName) {
      const count = (names.get(former.id) ?? 0) + 1
      names.set(former.id, count)
      if (count > maxNames) continue
    }
    left--
    yield former
  }
}

function* formersOf(
  kept: Iterable<Former>,
  before: Iterable<Livestream>,
  next: Pick<Feed, 'byId'>,
  now: number,
): Generator<Former> {
  const dropped = new Set<string>()
  for (const livestream of before) {
    const listed = next.byId.get(livestream.id)
    if (listed?.externalId === livestream.externalId) continue
    const former: Former = { ...livestream, droppedAt: now, ...(listed && { isName: true }) }
    dropped.add(keyOf(former))
    yield former
  }
  for (const former of kept) {
    const listed = next.byId.get(former.id)
    if (listed?.externalId === former.externalId) continue
    const named: Former = listed ? { ...former, isName: true } : former
    if (!dropped.has(keyOf(named))) yield named
  }
}

function keyOf({ id, externalId, isName }: Former): string {
  return isName ? JSON.stringify([id, externalId]) : id
}

/** If several livestreams had an external id in turn, it belongs to the last of them. */
function lastOf(formers: readonly Former[]): readonly Former[] {
  const last = Math.max(...formers.map(({ droppedAt }) => droppedAt))
  return formers.filter(({ droppedAt }) => droppedAt === last)
}
