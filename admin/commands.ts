import type { EventClass } from '../event/kind.ts'
import { whyWrong } from '../operations/check-arguments.ts'
import { choose } from '../operations/choose.ts'
import {
  type Args,
  type CommandsOf,
  type OperationCommands,
  type OperationName,
  operationNames,
  type Result,
} from '../operations/operations.ts'
import type { Commands } from '../operations/perform.ts'
import { assertCarriedOut, reasonOf, refusal, unknownName } from '../operations/refusal.ts'
import { inTimeOr } from '../store/deadline.ts'
import { type AedesImportParts, createAedesImport } from './aedes-redis/import-command.ts'
import type { Audit } from './audit.ts'
import { type CredentialCommandParts, createCredentialCommands } from './credential-commands.ts'
import { createEventCommands, type EventCommandParts } from './event-commands.ts'
import { createHttpsCommands, type HttpsCommandParts } from './https-commands.ts'
import { createQueueCommands, type QueueCommandParts } from './queue-commands.ts'
import { createSubscriptionCommands, type SubscriptionCommandParts } from './subscription-commands.ts'

type Awaitable<T> = T | Promise<T>

/** The parts of a node that commands ask and change. */
export interface CommandParts
  extends CredentialCommandParts,
    HttpsCommandParts,
    QueueCommandParts,
    SubscriptionCommandParts,
    EventCommandParts,
    AedesImportParts {
  audit: Audit
  status(): Awaitable<Result<'status'>>
  trend(): Result<'trend'>
  feed: SubscriptionCommandParts['feed'] & {
    status(): Awaitable<Result<'feed.status'>>
    refresh(options: { force: boolean }): Awaitable<Result<'feed.refresh'>>
    /** What would change. */
    diff(): Awaitable<Result<'feed.diff'>>
    /** Resolves when this node uses what other nodes have stored. */
    takenOver(): Awaitable<void>
    /** Returns an empty list if nothing has this id. */
    lookup(id: string | undefined): Awaitable<Result<'feed.lookup'>>
  }
  clients: {
    list(): Awaitable<Result<'clients.list'>>
    /** How many connected clients subscribe to all livestreams, and of the others to each of these. */
    count(livestreams: readonly string[]): Awaitable<{ ofAll: number; byLivestream: Record<string, number> }>
    exists(clientId: string): boolean
    disconnect(clientId: string): Awaitable<boolean | { error: string }>
  }
  sessions: CredentialCommandParts['sessions'] & {
    list(): Awaitable<Result<'sessions.list'>>
    exists(clientId: string): boolean
    /** The session with the messages that its client would get now, or undefined. */
    show(clientId: string): Awaitable<Result<'sessions.show'> | undefined>
    drop(clientId: string): Awaitable<boolean | { error: string }>
  }
  retained: {
    list(filter: string): Awaitable<Result<'retained.list'>>
    exists(topic: string): boolean
    clear(topic: string): Awaitable<boolean>
  }
  check(request: { payload: Buffer; institution: string; cls?: EventClass }): Awaitable<Result<'check'>>
  config(): Awaitable<Result<'config'>>
  store: {
    replaced(): { at: string; movedTo: string } | undefined
    accept(): Promise<void>
  }
  /** Resolves when this node has seen all earlier changes of other nodes. Rejects if the store does not answer. */
  catchUp(): Promise<void>
}

/** Commands about this node alone. They do not wait for the changes of other nodes. */
const aboutItself: ReadonlySet<string> = new Set(['status', 'trend', 'config'])

/** Longest wait for the changes of other nodes, milliseconds: `hubctl` answers within two seconds. */
const catchUpMs = 1_200

/** All commands of the admin socket (design.md §4). Every change is written to the audit log. */
export function createCommands(parts: CommandParts): Commands {
  const { audit, feed, retained } = parts

  const commands: OperationCommands = {
    status: async () => parts.status(),
    trend: async () => parts.trend(),
    config: async () => parts.config(),
    audit: async ({ limit, ...wanted }) => {
      const entries = choose(await audit.list(), wanted)
      return limit === undefined ? entries : entries.slice(-limit)
    },

    'feed.status': async () => {
      await feed.takenOver()
      return feed.status()
    },
    'feed.diff': async () => feed.diff(),
    'feed.refresh': async (args, who) => {
      const force = args.force === true
      return audit.change(who, 'feed.refresh', async (first) => {
        await first('feed', { force })
        const result = await feed.refresh({ force })
        const { ok, problem } = result
        if (!ok) {
          await audit.record({ who, action: 'feed.refresh', target: 'feed', detail: { failed: problem } })
        }
        return result
      })
    },
    'feed.lookup': async ({ id }) => {
      await feed.takenOver()
      const found = await feed.lookup(id)
      if (found.length === 0) throw refusal(whyNotFound(feed, id))
      return found
    },

    'retained.list': async ({ filter = '#', limit }) => choose(await retained.list(filter), {}, limit),
    'retained.clear': async (args, who) => {
      const topic = args.topic
      if (!retained.exists(topic)) throw unknownName('retained message on', topic)
      await audit.change(who, 'retained.clear', async (first) => {
        await first(topic, null)
        if (!(await retained.clear(topic))) throw unknownName('retained message on', topic)
      })
      return { topic, cleared: true }
    },

    'store.accept': async (_args, who) => {
      const replaced = parts.store.replaced()
      if (!replaced) throw refusal('the store was not replaced: there is nothing to accept')
      const { at, movedTo } = replaced
      await audit.change(who, 'store.accept', async (first) => {
        await first(movedTo, { at })
        await parts.store.accept()
      })
      return { accepted: true, at, movedTo }
    },

    ...createCredentialCommands(parts),
    ...sessionCommands(parts),
    ...createHttpsCommands(parts),
    ...createQueueCommands(parts),
    ...createSubscriptionCommands(parts),
    ...createEventCommands(parts),
    ...createAedesImport(parts),

    check: async ({ institution, class: cls, payload }) =>
      parts.check({
        ...{ payload: Buffer.from(payload, 'base64'), institution },
        ...(cls !== undefined && { cls }),
      }),
  }
  return Object.fromEntries(operationNames.map((name) => [name, careful(name, commands[name])]))

  /**
   * Checks the arguments and waits for the changes of other nodes. Then asks `isStillAllowed`: one of these changes may
   * end the rights of the person.
   */
  function careful<Name extends OperationName>(
    name: Name,
    command: OperationCommands[Name],
  ): Commands[string] {
    return async (args, who, isStillAllowed) => {
      const wrong = whyWrong(name, args)
      if (wrong !== undefined) throw refusal(wrong)
      const problem = aboutItself.has(name) ? undefined : await whyNotCaughtUp()
      if (problem !== undefined) {
        throw refusal(`the store does not answer: ${problem}. Nothing was done; hubctl status still answers`)
      }
      if (isStillAllowed && !(await isStillAllowed())) throw refusal(`${who} may no longer give commands`)
      return command(args as Args<Name>, who)
    }
  }

  function whyNotCaughtUp(): Promise<string | undefined> {
    const caughtUp = parts.catchUp().then(() => undefined, reasonOf)
    return inTimeOr(caughtUp, catchUpMs, `no answer within ${catchUpMs} ms`)
  }
}

/** The commands about connected clients, and about sessions, which outlive their connections. */
function sessionCommands(parts: CommandParts): CommandsOf<'clients' | 'sessions'> {
  const { clients, sessions, events, feed, audit } = parts
  return {
    'clients.list': async ({ limit, ...wanted }) => choose(await clients.list(), wanted, limit),
    'clients.count': async ({ livestream: name, limit }) => {
      const inFeed = feed.current()
      const wanted: { id: string; title: string | null }[] = []
      if (name === undefined) {
        for await (const { id, title } of inFeed?.all() ?? []) wanted.push({ id, title })
      } else {
        const named = await events.livestreams(name)
        if (named.length === 0) throw unknownName('livestream', name)
        wanted.push(...named.map(({ id }) => ({ id, title: inFeed?.byId.get(id)?.title ?? null })))
      }
      const { ofAll, byLivestream } = await clients.count(wanted.map(({ id }) => id))
      const rows = wanted.map(({ id, title }) => {
        return { livestreamId: id, title, subscribers: byLivestream[id] ?? 0, ofAll }
      })
      return choose(
        rows.sort((a, b) => b.subscribers - a.subscribers),
        {},
        limit,
      )
    },
    'clients.disconnect': async (args, who) => {
      const clientId = args.clientId
      if (!clients.exists(clientId)) throw unknownName('connected client', clientId)
      await audit.change(who, 'clients.disconnect', async (first) => {
        await first(clientId, null)
        assertCarriedOut(await clients.disconnect(clientId), 'connected client', clientId)
      })
      return { clientId, disconnected: true }
    },

    'sessions.list': async ({ limit, ...wanted }) => choose(await sessions.list(), wanted, limit),
    'sessions.show': async (args) => {
      const clientId = args.clientId
      const session = await sessions.show(clientId)
      if (session === undefined) throw unknownName('session', clientId)
      return session
    },
    'sessions.drop': async (args, who) => {
      const clientId = args.clientId
      if (!sessions.exists(clientId)) throw unknownName('session', clientId)
      await audit.change(who, 'sessions.drop', async (first) => {
        await first(clientId, null)
        assertCarriedOut(await sessions.drop(clientId), 'session', clientId)
      })
      return { clientId, dropped: true }
    },
  }
}

function whyNotFound(feed: CommandParts['feed'], id: string | undefined): string {
  if (!feed.current()) return 'this node has no livestream feed: hubctl feed status says why'
  if (id === undefined) return 'the livestream feed is empty'
  return `the livestream feed does not know ${JSON.stringify(id)}`
}
