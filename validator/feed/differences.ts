import { isDeepStrictEqual } from 'node:util'
import { type Livestream, openFeed } from './feed.ts'
import { type Packed, unpackAll } from './packed.ts'

/** What would change. `count` counts all, `items` are the first of them. */
export interface FeedDifferences {
  added: DifferencePart<Listed>
  removed: DifferencePart<Listed>
  /** The same livestream, of another publisher or institution. */
  owners: DifferencePart<Listed & { before: Owner; after: Owner }>
  /** The same livestream, with another external id. */
  renamed: DifferencePart<Listed & { before: string; after: string }>
  /** Livestreams of which only what people read has changed. */
  retitled: { count: number }
}

interface DifferencePart<Item> {
  count: number
  items: Item[]
}

interface Listed {
  id: string
  title: string
  institution: string
}

interface Owner {
  publisher: string
  institution: string
}

/** Maximum number of livestreams in each list. */
const mostListed = 100

/** Compares a feed with the one in use. Without one, every livestream is added. */
export function differences(inUse: Packed | undefined, next: Packed): FeedDifferences {
  const [before, after] = [inUse && openFeed(inUse), openFeed(next)]
  const [added, removed] = [createPart<Listed>(), createPart<Listed>()]
  const owners = createPart<Listed & { before: Owner; after: Owner }>()
  const renamed = createPart<Listed & { before: string; after: string }>()
  let retitled = 0
  for (const livestream of unpackAll<Livestream>(next)) {
    const former = before?.byId.get(livestream.id)
    if (!former) {
      added.add(listed(livestream))
      continue
    }
    const owner = { before: ownerOf(former), after: ownerOf(livestream) }
    const hasOtherOwner = !isDeepStrictEqual(owner.before, owner.after)
    const hasOtherName = former.externalId !== livestream.externalId
    if (hasOtherOwner) owners.add({ ...listed(livestream), ...owner })
    if (hasOtherName) {
      renamed.add({ ...listed(livestream), before: former.externalId, after: livestream.externalId })
    }
    if (!hasOtherOwner && !hasOtherName && JSON.stringify(former) !== JSON.stringify(livestream)) retitled++
  }
  for (const livestream of inUse ? unpackAll<Livestream>(inUse) : []) {
    if (!after.byId.get(livestream.id)) removed.add(listed(livestream))
  }
  return {
    added: added.part,
    removed: removed.part,
    owners: owners.part,
    renamed: renamed.part,
    retitled: { count: retitled },
  }
}

function createPart<Item>() {
  const part: DifferencePart<Item> = { count: 0, items: [] }
  return {
    part,
    add(item: Item): void {
      part.count++
      if (part.items.length < mostListed) part.items.push(item)
    },
  }
}

function listed({ id, title, institution }: Livestream): Listed {
  return { id, title, institution: institution.title || institution.id }
}

function ownerOf({ publisher, institution }: Livestream): Owner {
  return { publisher: publisher.id, institution: institution.id }
}
