import { isInstitutionUrn, isLivestreamUrn, isPublisherUrn, maxUrnLength } from '../../event/format.ts'
import { halfCharacter, halfCharacters, isRecord } from '../../event/json.ts'
import { foldExternalId } from './external-id.ts'
import type { Livestream } from './livestream.ts'
import { openPacked, type Packed, pack } from './packed.ts'
import { readInParts } from './parts.ts'
import { type FeedProblem, refuse } from './refusals.ts'

export type { Livestream } from './livestream.ts'

/** Finds a livestream, or several, by a text. A `Map` is such an index. */
interface Index<Found> {
  get(text: string): Found | undefined
}

/** Livestreams by id and by external id. */
export interface LivestreamIndex<One extends Livestream = Livestream> {
  readonly byId: Index<One>
  /** Several livestreams may have the same external id. Only the id is unique. */
  readonly byExternalId: Index<readonly One[]>
  /** Livestreams whose external id looks the same to people (`foldExternalId`). */
  likeExternalId(externalId: string): readonly One[]
}

/** One good feed, indexed. */
export interface Feed extends LivestreamIndex {
  readonly size: number
  /** The first livestream in the feed, for examples. */
  readonly sample: Livestream | undefined
  /** All livestreams, in several turns of the event loop. */
  all(): AsyncIterable<Livestream>
  hasInstitution(institutionId: string): boolean
  /** The ids of all institutions. */
  institutions(): string[]
  /** Whether a livestream of the institution has this publisher. */
  isPublisherOf(publisherId: string, institutionId: string): boolean
}

/** Holds the feed in use. */
export interface FeedInUse {
  /** Undefined: the hub has not read a good feed yet. */
  readonly inUse: { readonly feed: Feed } | undefined
}

/** Maximum number of livestreams of a feed. */
export const maxLivestreams = 50_000

/** Reads and indexes a feed in this thread, for programs that serve no events. */
export function parseFeed(text: string): { feed: Feed; livestreams: Livestream[] } | FeedProblem {
  const read = listLivestreams(text)
  return 'reason' in read ? read : { ...read, feed: openFeed(pack(read.livestreams)) }
}

/** Reads a feed, for programs that serve no events. */
export function listLivestreams(text: string): { livestreams: Livestream[] } | FeedProblem {
  let livestreams: Livestream[] = []
  const problem = readLivestreams(Buffer.from(text), () => {
    livestreams = []
    return (livestream) => livestreams.push(livestream)
  })
  return problem ?? { livestreams }
}

/** A feed whose memory can be used again. */
export interface OpenedFeed extends Feed {
  /** What this feed answers with: itself, or the one that replaced it. */
  opened(): ReturnType<typeof openPacked<Livestream>>
  /**
   * From now on the feed answers as `next` does. Returns its memory, for a later feed. Undefined: somebody is reading all
   * its livestreams, so that it stays.
   */
  replaceBy(next: OpenedFeed): SharedArrayBuffer | undefined
}

/** Opens a feed that another thread has packed. Takes no time. `most`: livestreams that are kept unpacked. */
export function openFeed(packed: Packed, most?: number): OpenedFeed {
  const own = openPacked<Livestream>(packed, most)
  let opened = () => own
  return {
    get size() {
      return opened().size
    },
    get sample() {
      const { size, at } = opened()
      return size > 0 ? at(0) : undefined
    },
    all: () => opened().all(),
    hasInstitution: (institutionId) => opened().hasInstitution(institutionId),
    institutions: () => opened().institutions(),
    isPublisherOf: (publisherId, institutionId) => opened().isPublisherOf(publisherId, institutionId),
    ...livestreamsOf({
      byId: (id) => opened().byId(id),
      byExternalId: (externalId) => opened().byExternalId(externalId),
      byFolded: (folded) => opened().byFolded(folded),
    }),
    opened: () => opened(),
    replaceBy(next) {
      if (own.isBeingRead()) return undefined
      opened = next.opened
      return packed.memory
    },
  }
}

/** Look-ups as events need them. */
export function livestreamsOf<One extends Livestream>(
  found: Pick<ReturnType<typeof openPacked<One>>, 'byId' | 'byExternalId' | 'byFolded'>,
): LivestreamIndex<One> {
  return {
    byId: { get: (id) => found.byId(id)[0] },
    byExternalId: {
      get(externalId) {
        const list = found.byExternalId(externalId)
        return list.length > 0 ? list : undefined
      },
    },
    likeExternalId: (externalId) => found.byFolded(foldExternalId(externalId)),
  }
}

/**
 * Reads a feed document in UTF-8, one livestream after the other. Refuses the whole feed if one item is bad. Without the
 * item, the hub would block its livestream. `begin` returns who takes the livestreams. It is called again if the document
 * has another list of them, because the last one counts.
 */
export function readLivestreams(
  bytes: Buffer,
  begin: () => (livestream: Livestream) => void,
): FeedProblem | undefined {
  let list = startItems(begin)
  let read: ReturnType<typeof readInParts>
  try {
    read = readInParts(bytes, 'items', () => {
      list = startItems(begin)
      return list.take
    })
  } catch (error) {
    return refuse('json', `not JSON: ${faultOf(bytes) ?? messageOf(error)}`)
  }
  const { items, ...about } = isRecord(read.rest) ? read.rest : { items: undefined }
  if (!Array.isArray(items)) return refuse('shape', 'items: expected an array of livestreams')
  const count = list.count()
  const partial = whyPartial(about, count)
  if (partial !== undefined) return refuse('partial', partial)
  if (count === 0) return refuse('shape', 'items: expected at least one livestream')
  if (count > maxLivestreams) {
    return refuse('too-many', `${count} livestreams, expected at most ${maxLivestreams}`)
  }

  const [half = list.half()] = halfCharacters(read.text, read.rest)
  if (half !== undefined) return refuse('text', `${half.slice(1)}: ${halfCharacter}`)
  return list.problem()
}

/** What JSON.parse says of the whole document: a part does not know where it stands. */
function faultOf(bytes: Buffer): string | undefined {
  try {
    JSON.parse(bytes.toString())
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/**
 * Reads the items of a feed: each must be a proper livestream, and another one than the others. Hands over those before the
 * first that is not.
 */
function startItems(begin: () => (livestream: Livestream) => void) {
  const takeLivestream = begin()
  const ids = new Set<string>()
  let count = 0
  let half: string | undefined
  let problem: FeedProblem | undefined
  return {
    take(item: unknown, text: string): void {
      const index = count++
      half ??= halfCharacters(text, { items: { [index]: item } }).next().value
      if (problem || half !== undefined || count > maxLivestreams) return
      const livestream = readItem(item)
      problem = problemOf(livestream, index)
      if (problem) return
      ids.add(livestream.id)
      takeLivestream(livestream)
    },
    count: () => count,
    half: () => half,
    problem: () => problem,
  }

  function problemOf(livestream: Livestream, index: number): FeedProblem | undefined {
    const wrong = whatIsWrong(livestream)
    if (wrong !== undefined) return refuse('shape', `items.${index}.${wrong}`)
    if (!ids.has(livestream.id)) return undefined
    return refuse('duplicate', `items.${index}.id: ${livestream.id} is listed twice`)
  }
}

/** Why a feed is only a part, by what it says of itself. Services that give numbers as texts mean the same. */
function whyPartial(about: Record<string, unknown>, count: number): string | undefined {
  const { pageIndex } = about
  const [totalPageCount, totalItemCount] = [numberOf(about.totalPageCount), numberOf(about.totalItemCount)]
  if (totalPageCount > 1) {
    const page = Number.isInteger(pageIndex) ? `page ${Number(pageIndex) + 1}` : 'one page'
    return `it is ${page} of ${totalPageCount}, expected all livestreams`
  }
  if (totalItemCount > count) return `it has ${count} of ${totalItemCount} livestreams, expected all`
  return undefined
}

function numberOf(value: unknown): number {
  return typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
}

function readItem(item: unknown): Livestream {
  const source = isRecord(item) ? item : {}
  const publisher = isRecord(source.publisher) ? source.publisher : {}
  const institution = isRecord(publisher.institution) ? publisher.institution : {}
  return {
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
}

const urn = `URN of at most ${maxUrnLength} characters`

/** Checks the fields that decide about ownership. The other fields are merely shown. */
function whatIsWrong({ id, externalId, publisher, institution }: Livestream): string | undefined {
  if (!isLivestreamUrn(id)) return `id: expected a livestream ${urn}`
  if (externalId === '') return 'externalId: expected a string'
  if (!isPublisherUrn(publisher.id)) return `publisher.id: expected a publisher ${urn}`
  if (!isInstitutionUrn(institution.id)) return `publisher.institution.id: expected an institution ${urn}`
  return undefined
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/**
 * The livestreams whose publisher or institution has the id `text`, and those with `text` in the name of the livestream,
 * its publisher or its institution.
 */
export function namedLike(feed: Feed, text: string): Promise<Livestream[]> {
  const sought = foldName(text)
  return chosen(feed, ({ title, publisher, institution }) => {
    const names = [title, publisher.title, institution.title, institution.acronym]
    const isId = publisher.id === text || institution.id === text
    return isId || (sought !== '' && names.some((name) => foldName(name).includes(sought)))
  })
}

/** The livestreams with this title. */
export function titled(feed: Feed, name: string): Promise<Livestream[]> {
  const sought = foldName(name)
  return chosen(feed, ({ title }) => foldName(title) === sought)
}

/** The livestreams that are meant, looked for in several turns of the event loop. */
export async function chosen(
  feed: Feed,
  isMeant: (livestream: Livestream) => boolean,
): Promise<Livestream[]> {
  const found: Livestream[] = []
  for await (const livestream of feed.all()) if (isMeant(livestream)) found.push(livestream)
  return found
}

function foldName(name: string): string {
  return name.normalize('NFKC').toLowerCase().trim().replace(/\s+/g, ' ')
}
