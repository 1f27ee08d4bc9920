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
 * What is former when the feed `next` replaces `before`: what `kept` has and what drops out now. Of each livestream the
 * newest `maxNames` names stay, of all the newest `most`.
 */
export function nextFormer(
  kept: Iterable<Former>,
  before: Iterable<Livestream>,
  next: Pick<Feed, 'byId'>,
  now: number,
  most = maxFormer,
): Former[] {
  const formers = new Map([...kept].map((former) => [keyOf(former), former]))
  const add = (former: Former) => formers.has(keyOf(former)) || formers.set(keyOf(former), former)
  for (const livestream of before) {
    const listed = next.byId.get(livestream.id)
    if (!listed) add({ ...livestream, droppedAt: now })
    else if (listed.externalId !== livestream.externalId) {
      add({ ...livestream, droppedAt: now, isName: true })
    }
  }
  for (const [key, former] of formers) {
    const listed = next.byId.get(former.id)
    if (!listed) continue
    const hasNameAgain = listed.externalId === former.externalId
    if (hasNameAgain || !former.isName) formers.delete(key)
    if (!hasNameAgain && !former.isName) add({ ...former, isName: true })
  }
  const newestFirst = [...formers.values()].sort((a, b) => b.droppedAt - a.droppedAt)
  return withoutExcessNames(newestFirst).slice(0, most)
}

function withoutExcessNames(newestFirst: readonly Former[]): Former[] {
  const counts = new Map<string, number>()
  return newestFirst.filter(({ id, isName }) => {
    if (!isName) return true
    const count = (counts.get(id) ?? 0) + 1
    counts.set(id, count)
    return count <= maxNames
  })
}

function keyOf({ id, externalId, isName }: Former): string {
  return isName ? JSON.stringify([id, externalId]) : id
}

/** If several livestreams had an external id in turn, it belongs to the last of them. */
function lastOf(formers: readonly Former[]): readonly Former[] {
  const last = Math.max(...formers.map(({ droppedAt }) => droppedAt))
  return formers.filter(({ droppedAt }) => droppedAt === last)
}
