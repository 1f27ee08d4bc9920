import { isInstitutionUrn, isLivestreamUrn, isPublisherUrn } from '../../event/format.ts'
import { isRecord } from '../../event/json.ts'
import { foldExternalId } from './external-id.ts'

/** A livestream as the central feed lists it (design.md §6). */
export interface Livestream {
  id: string
  type: string
  externalId: string
  title: string
  publisher: { id: string; externalId: string; title: string }
  institution: { id: string; title: string; acronym: string }
}

/** Finds a livestream, or several, by a text. A `Map` is such an index. */
interface Index<Found> {
  get(text: string): Found | undefined
}

/** Livestreams by id and by external id. */
export interface Livestreams<One extends Livestream = Livestream> {
  readonly byId: Index<One>
  /** Several livestreams may have the same external id. Only the id is unique. */
  readonly byExternalId: Index<readonly One[]>
  /** Livestreams whose external id looks the same to people (`foldExternalId`). */
  likeExternalId(externalId: string): readonly One[]
}

/** One good feed, indexed. */
export interface Feed extends Livestreams {
  readonly size: number
  /** The first livestream in the feed, for examples. */
  readonly sample: Livestream | undefined
  all(): Iterable<Livestream>
  byPublisher(publisherId: string): readonly Livestream[]
  hasInstitution(institutionId: string): boolean
}

/** Holds the feed in use. */
export interface FeedInUse {
  /** Undefined: the hub has not read a good feed yet. */
  readonly inUse: { readonly feed: Feed } | undefined
}

/**
 * Reads a feed document. Refuses the whole feed if one item is bad. Without the item, the hub would block its
 * livestream.
 */
export function parseFeed(text: string): { feed: Feed } | { problem: string } {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    return { problem: `not JSON: ${error instanceof Error ? error.message : error}` }
  }
  const items = isRecord(document) ? document.items : undefined
  if (!Array.isArray(items)) return { problem: 'items: expected an array of livestreams' }
  if (items.length === 0) return { problem: 'items: expected at least one livestream' }

  const byId = new Map<string, Livestream>()
  const byPublisher = new Map<string, Livestream[]>()
  const institutions = new Set<string>()
  for (const [index, item] of items.entries()) {
    const read = readItem(item)
    if ('problem' in read) return { problem: `items.${index}.${read.problem}` }
    const { livestream } = read
    if (byId.has(livestream.id)) return { problem: `items.${index}.id: ${livestream.id} is listed twice` }
    byId.set(livestream.id, livestream)
    append(byPublisher, livestream.publisher.id, livestream)
    institutions.add(livestream.institution.id)
  }
  return {
    feed: {
      size: byId.size,
      sample: byId.values().next().value,
      all: () => byId.values(),
      ...indexed(byId),
      byPublisher: (publisherId) => byPublisher.get(publisherId) ?? [],
      hasInstitution: (institutionId) => institutions.has(institutionId),
    },
  }
}

/** Adds look-ups by external id to a map of livestreams. */
export function indexed<One extends Livestream>(byId: ReadonlyMap<string, One>): Livestreams<One> {
  const byExternalId = new Map<string, One[]>()
  const folded = new Map<string, One[]>()
  for (const livestream of byId.values()) {
    append(byExternalId, livestream.externalId, livestream)
    append(folded, foldExternalId(livestream.externalId), livestream)
  }
  return {
    byId,
    byExternalId,
    likeExternalId: (externalId) => folded.get(foldExternalId(externalId)) ?? [],
  }
}

function readItem(item: unknown): { livestream: Livestream } | { problem: string } {
  const source = isRecord(item) ? item : {}
  const publisher = isRecord(source.publisher) ? source.publisher : {}
  const institution = isRecord(publisher.institution) ? publisher.institution : {}
  const livestream: Livestream = {
    id: textOf(source.id),
    type: textOf(source.type),
    externalId: textOf(source.externalId),
    title: textOf(source.title),
    publisher: {
      id: textOf(publisher.id),
      externalId: textOf(publisher.externalId),
      title: textOf(publisher.title),
    },
    institution: {
      id: textOf(institution.id),
      title: textOf(institution.title),
      acronym: textOf(institution.acronym),
    },
  }
  // Checks the fields that decide about ownership. The other fields are merely shown.
  if (!isLivestreamUrn(livestream.id)) return { problem: 'id: expected a livestream URN' }
  if (livestream.externalId === '') return { problem: 'externalId: expected a string' }
  if (!isPublisherUrn(livestream.publisher.id)) return { problem: 'publisher.id: expected a publisher URN' }
  if (!isInstitutionUrn(livestream.institution.id)) {
    return { problem: 'publisher.institution.id: expected an institution URN' }
  }
  return { livestream }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function append<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key)
  if (list) list.push(value)
  else lists.set(key, [value])
}

/**
 * The livestreams whose institution has the id `text`, and those with `text` in the name of the livestream, its
 * publisher or its institution.
 */
export function namedLike(livestreams: Iterable<Livestream>, text: string): Livestream[] {
  const sought = foldName(text)
  if (sought === '') return []
  return [...livestreams].filter(({ title, publisher, institution }) => {
    const names = [title, publisher.title, institution.title, institution.acronym]
    return institution.id === text || names.some((name) => foldName(name).includes(sought))
  })
}

/** The livestreams with this title. */
export function titled(livestreams: Iterable<Livestream>, name: string): Livestream[] {
  return [...livestreams].filter(({ title }) => foldName(title) === foldName(name))
}

function foldName(name: string): string {
  return name.normalize('NFKC').toLowerCase().trim().replace(/\s+/g, ' ')
}
