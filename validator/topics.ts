import { crc64 } from '../event/derived-id.ts'
import { caughtUp } from '../store/caught-up.ts'
import type { CommitEnd, Prepare } from '../store/commit-together.ts'
import { storeKeys } from '../store/keys.ts'
import type { Change, Store } from '../store/store.ts'
import { foldExternalId } from './feed/external-id.ts'

export type Topics = Awaited<ReturnType<typeof createTopics>>

/** The topic of a livestream, as the HTTPS API lists it. */
interface Topic {
  /** Livestream URN. */
  id: string
  createdAt: string
  /** Owner of a livestream that no feed ever listed: the institution that published for it first. */
  institutionId?: string
  /** CRC-64 of the external id after `foldExternalId`, if it differs from the CRC-64 in `id`. */
  folded?: string
}

/** Owner and external id of a livestream that no feed ever listed. */
export interface Unlisted {
  institutionId: string
  externalId: string
}

/**
 * Keeps the topics: one per livestream, from its first event on (service.md §1). The commit of that event must store
 * the topic as well.
 */
export async function createTopics(store: Store) {
  const topics = new Map<string, Topic>()
  /** Number of stored topics by the institution that owns them. */
  const counts = new Map<string, number>()
  /** Topics that are being stored, and how many events are storing each of them. */
  const pending = new Map<string, { topic: Topic; events: number }>()
  /** Ids of the topics that have an owner, by the CRC-64 of their external ids. */
  const owned = new Map<string, string>()
  for await (const [key, value] of store.range(prefix)) take(key, value)
  store.onOthers(prefix, take)

  return {
    /** Waits for the topics that other nodes have made. False: there are no other nodes, or the store does not answer. */
    caughtUp: (): Promise<boolean> => caughtUp(store),
    /** The ids of all livestreams with a topic, sorted. */
    ids: (): string[] => [...topics.keys()].sort(),
    /** The topics that are stored, by livestream id. */
    stored: topics as ReadonlyMap<string, Topic>,
    /** Whether a livestream has a topic, or one that is being stored. */
    has: (livestreamId: string): boolean => find(livestreamId) !== undefined,

    /** Number of topics that an institution owns, stored or being stored. */
    countOf(institutionId: string): number {
      let count = counts.get(institutionId) ?? 0
      // Few topics are being stored at a time.
      for (const [id, { topic }] of pending)
        if (topic.institutionId === institutionId && !topics.has(id)) count++
      return count
    },

    /**
     * Returns the owner of a livestream that no feed ever listed. Asks the topic of the livestream, and topics with
     * similar external ids. If these topics have several owners, returns one that is not `asker`.
     *
     * - `unknown`: one of these topics names no owner.
     * - Undefined: there are no such topics.
     */
    ownerOf(livestreamId: string, externalId: string, asker: string): string | 'unknown' | undefined {
      const codes = [crc64(externalId), crc64(foldExternalId(externalId))]
      const topics = [find(livestreamId), ...codes.map((code) => find(owned.get(code)))]
      const owners = topics.flatMap((topic) => (topic ? [topic.institutionId ?? 'unknown'] : []))
      // An owner other than `asker` wins. Anybody can make up an external id with the same CRC-64 as `externalId`. If
      // `asker` owns the topic of such an id, that topic must not make `asker` the owner.
      return owners.find((owner) => owner !== asker) ?? owners[0]
    },

    /**
     * Makes topics for livestreams that have none. `unlisted`: the owners of livestreams that no feed ever listed. Until
     * the commit ends, the new topics count as being stored.
     */
    missing(
      livestreamIds: readonly string[],
      now: number,
      unlisted: ReadonlyMap<string, Unlisted> = new Map(),
    ): Prepare {
      return () => {
        const absent = new Set(livestreamIds.filter((id) => !topics.has(id)))
        const created = [...absent].map((id): Topic => {
          const createdAt = new Date(now).toISOString()
          return { id, createdAt, ...ownership(id, unlisted.get(id)) }
        })
        for (const topic of created) reserve(topic)
        return { changes: created.map(toChange), end: (how) => end(created, how) }
      }
    },
  }

  function find(livestreamId: string | undefined): Topic | undefined {
    if (livestreamId === undefined) return undefined
    return topics.get(livestreamId) ?? pending.get(livestreamId)?.topic
  }

  /** No node removes a topic. */
  function take(_key: string, value: Buffer | undefined): void {
    if (value) put(JSON.parse(value.toString()))
  }

  function end(created: readonly Topic[], how: CommitEnd): undefined {
    for (const topic of created) {
      release(topic)
      const known = topics.get(topic.id)
      // If another node was earlier, the store has kept the topic of that node.
      if (how !== 'failed' && (!known || orderOf(known) <= orderOf(topic))) put(topic)
    }
  }

  function put(topic: Topic): void {
    countOwner(topics.get(topic.id)?.institutionId, -1)
    countOwner(topic.institutionId, 1)
    topics.set(topic.id, topic)
    own(topic)
  }

  function countOwner(institutionId: string | undefined, by: number): void {
    if (institutionId !== undefined) counts.set(institutionId, (counts.get(institutionId) ?? 0) + by)
  }

  function own(topic: Topic): void {
    if (topic.institutionId === undefined) return
    for (const key of keysOf(topic)) if (!find(owned.get(key))) owned.set(key, topic.id)
  }

  function reserve(topic: Topic): void {
    const known = pending.get(topic.id)
    if (known) known.events++
    else pending.set(topic.id, { topic, events: 1 })
    own(topic)
  }

  function release({ id }: Topic): void {
    const known = pending.get(id)
    if (!known || --known.events > 0) return
    pending.delete(id)
    if (topics.has(id)) return
    for (const key of keysOf(known.topic)) if (owned.get(key) === id) owned.delete(key)
  }
}

function ownership(id: string, unlisted: Unlisted | undefined): Pick<Topic, 'institutionId' | 'folded'> {
  if (!unlisted) return {}
  const { institutionId, externalId } = unlisted
  const folded = crc64(foldExternalId(externalId))
  return { institutionId, ...(folded !== codeOf(id) && { folded }) }
}

function keysOf({ id, folded }: Topic): string[] {
  return [codeOf(id), ...(folded === undefined ? [] : [folded])]
}

/** The last part of a derived id: the CRC-64 of the external id. */
function codeOf(livestreamId: string): string {
  return livestreamId.slice(livestreamId.lastIndexOf(':') + 1)
}

function toChange(topic: Topic): Change {
  const order = { time: orderOf(topic), horizon: Number.MAX_SAFE_INTEGER }
  return { put: prefix + topic.id, value: JSON.stringify(topic), order }
}

/**
 * The order of a topic: an earlier topic has a greater order. Of two topics, the store keeps the one with the greater
 * order.
 */
function orderOf({ createdAt }: Topic): number {
  return -Date.parse(createdAt)
}

const { prefix } = storeKeys.topic
