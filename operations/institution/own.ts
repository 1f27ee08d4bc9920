import type { Credential } from '../../acl/credentials.ts'
import type { PushSubscription } from '../../delivery/webhook/subscription.ts'
import { isInstitutionUrn } from '../../event/format.ts'
import type { Week } from '../../event/week.ts'
import type { Entry } from '../../journal/entry.ts'
import { type EventRow, institutionOf } from '../../journal/history/event-row.ts'
import type { Found } from '../../journal/history/find.ts'
import { refusal, unknownName } from '../errors.ts'
import { toShown } from '../events.ts'
import { institutionOperations } from '../institutions.ts'
import type { NodeParts } from '../node-parts.ts'
import type { ChangeRequest } from '../operation.ts'
import { queueOperations } from '../queues.ts'
import { pauserOf, subscriptionOperations } from '../subscriptions.ts'
import { livestreamNamed, livestreamsOf, type OwnLivestream } from './livestreams-of.ts'

export type { OwnLivestream } from './livestreams-of.ts'

/** Who asks: a user of the HTTPS API. */
export interface InstitutionUser {
  institutionId: string
  permissions: readonly string[]
}

/** Events of an institution that are asked for. */
export interface OwnQuery {
  isMeant: (row: EventRow) => boolean
  since: number
  before?: number | undefined
  limit: number
}

/** What one institution may see and change. */
export type Own = ReturnType<typeof ownOf>

/**
 * All that a user's institution may see and change of the hub (open.md §7). **This function alone limits it**: the
 * commands of institutions get what it returns, and never the parts of the node. What belongs to another institution is
 * not found, in the same words as what does not exist.
 */
export function ownOf(node: NodeParts, { institutionId, permissions }: InstitutionUser) {
  if (!isInstitutionUrn(institutionId)) throw refusal('your user belongs to no institution with a URN')
  const { broker, contacts, credentials, deliveries, institutionMail, pipeline } = node
  const { history } = broker
  const ofOperators = { ...subscriptionOperations, ...institutionOperations, ...queueOperations }
  const owned = (name: string): PushSubscription => {
    const found = deliveries.subscriptions.get(institutionId, name)
    if (!found) throw unknownName('subscription', name)
    return found
  }

  return {
    institutionId,

    livestreams: {
      /** Those of the feed, and others that the institution has made or had. */
      all: (): Promise<OwnLivestream[]> => livestreamsOf(node, institutionId),

      named(id: string): OwnLivestream {
        const found = livestreamNamed(node, id)
        if (found?.institutionId !== institutionId) throw unknownName('livestream', id)
        return found
      },

      /** What each shows and who reads it. `ofOwn` are livestreams of this institution. */
      nowOf: ({ id }: OwnLivestream) => node.nowOf(id),
      silentSince: ({ id }: OwnLivestream) => node.silentSince?.(id) ?? null,
      /** Not with whom: that is a livestream of others. */
      loopSince({ id }: OwnLivestream) {
        const { since } = node.watch.loopOf(id) ?? {}
        return since === undefined ? null : new Date(since).toISOString()
      },
      subscribers: (ofOwn: readonly OwnLivestream[]) => broker.subscribers(ofOwn.map(({ id }) => id)),
    },

    events: {
      /** Events that came for this institution, whatever became of them, the newest first. */
      list: (query: OwnQuery) => history.list({ ...query, institutionIds: [institutionId] }),

      /** One of them, by its id or by the position in a list. Recipients of others are numbers. */
      async show(id: string) {
        const isPosition = /^[0-9]{1,16}$/.test(id)
        const found = isPosition
          ? await history.find.at(Number(id), cameHere)
          : (await history.find.ofInstitution(id, institutionId)).found
        if (!found) throw unknownName('event that is still kept with', id)
        return narrowedEvent(await toShown(node, found))
      },

      /** Who got it: the own webhooks one by one, if the user may see them, and how many others. */
      receivers: async (found: Found) => narrowedEvent(await toShown(node, found)).receivers,

      /** What would become of an event. */
      check: (payload: Buffer, topicClass: 'track' | 'control' | 'data' | undefined) =>
        pipeline.check({ payload, institutionId, topicClass, allowedClasses: [] }),
    },

    /** What was counted of the events that came for this institution in a week. Undefined: it is not known any more. */
    counted: (week: Week) => node.watch.weekOf(week, institutionId),

    credentials: {
      /** Those that may publish for this institution. Other institutions of theirs are left out: `isShared`. */
      list: (): (Credential & { isShared: boolean; lastUsedAt: string | null })[] =>
        credentials.list().filter(mayPublishHere).map(narrowed),

      /** How many clients are connected with each of them. */
      async connected(): Promise<ReadonlyMap<string, number>> {
        const own = new Set(
          credentials
            .list()
            .filter(mayPublishHere)
            .map(({ username }) => username),
        )
        const counts = new Map<string, number>()
        for (const { username } of await broker.clients())
          if (own.has(username)) counts.set(username, (counts.get(username) ?? 0) + 1)
        return counts
      },

      /** Ends one that publishes for this institution alone. */
      async revoke(username: string, { note }: ChangeRequest): Promise<void> {
        const found = credentials.get(username)
        if (!found || !mayPublishHere(found)) throw unknownName('credential', username)
        if (found.institutions.length > 1)
          throw refusal('it publishes for other institutions, too: only an operator of the hub revokes it')
        await note(username, { institutionId })
        if (!(await credentials.revoke(username))) throw unknownName('credential', username)
      },
    },

    subscriptions: {
      list: () => ofOperators['subscriptions.list'].run(node, { institution: institutionId }),

      async show(name: string) {
        const found = owned(name)
        const shown = await ofOperators['subscriptions.show'].run(node, { name: found.name })
        const attempts = await deliveries.attempts(found.name)
        const deadLetters = deliveries.deadLetters(found.name)
        const paused = shown.paused && {
          at: shown.paused.at,
          by: pauserOf(found, true) ?? '',
          mayResume: found.isPausedByOwner ?? false,
        }
        return { ...shown, paused, attempts, letters: deadLetters }
      },

      test: (name: string, change: ChangeRequest) =>
        ofOperators['subscriptions.test'].run(node, { name: owned(name).name }, change),
      pause: (name: string, change: ChangeRequest) =>
        ofOperators['subscriptions.pause'].run(node, { name: owned(name).name }, change),
      resume: (name: string, change: ChangeRequest) =>
        ofOperators['subscriptions.resume'].run(node, { name: owned(name).name }, change),

      replay(name: string, asked: { messageId?: string; since?: string }, change: ChangeRequest) {
        const found = owned(name)
        if (found.pausedAt !== undefined) throw refusal('nothing is replayed: it is paused. Resume it first')
        return ofOperators['queues.replay'].run(node, { name: found.name, ...asked }, change)
      },
    },

    contact: {
      get: () => contacts.list().find((one) => one.institutionId === institutionId),

      /** Mails a link to an address, three an hour at most: they go to whomever a user names. */
      async set(email: string, change: ChangeRequest) {
        const wait = await institutionMail?.mayConfirm(institutionId)
        if (wait !== undefined)
          throw refusal(`your institution had three of these mails within the hour: again in ${wait} s`)
        return ofOperators['institutions.contact'].run(node, { institution: institutionId, email }, change)
      },

      remove: (change: ChangeRequest) =>
        ofOperators['institutions.remove-contact'].run(node, { institution: institutionId }, change),
    },
  }

  /** Whether an event or report is one of this institution. */
  function cameHere(entry: Entry): boolean {
    return (entry.isReport ? institutionOf(entry) : entry.institutionId) === institutionId
  }

  function mayPublishHere({ role, institutions }: Credential): boolean {
    return role === 'publisher' && institutions.includes(institutionId)
  }

  function narrowed(credential: Credential) {
    const { username, institutions } = credential
    return {
      ...credential,
      institutions: [institutionId],
      isShared: institutions.length > 1,
      lastUsedAt: node.lastUsed(username) ?? null,
    }
  }

  /** An event without the names of nodes, and of receivers of others. */
  function narrowedEvent({ deliveries: all, nodes, stages, ...event }: Awaited<ReturnType<typeof toShown>>) {
    const own = all.filter(({ queue }) => deliveries.subscriptions.get(institutionId, queue))
    const known = nodes.flatMap(({ recipients }) => recipients ?? [])
    return {
      ...event,
      stages: stages && { decided: stages.decided, stored: stages.stored, written: stages.written },
      receivers: {
        clients: known.length > 0 ? known.reduce((sum, count) => sum + count) : null,
        webhooks: permissions.includes('subscribe') ? own : null,
        others: all.length - own.length,
      },
    }
  }
}
