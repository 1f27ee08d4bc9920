import type { Credential, Credentials, IssuedCredential } from '../acl/credentials.ts'
import { checkClass, checkInstitution } from '../acl/permissions.ts'
import { type EventClass, isEventClass } from '../event/kind.ts'
import { accepted, optionalNumber, text, texts, unknown } from './arguments.ts'
import type { Audit } from './audit.ts'
import { createHttpsCommands, type HttpsCommandParts } from './https-commands.ts'
import { createQueueCommands, type QueueCommandParts } from './queue-commands.ts'
import { type Commands, refusal } from './socket.ts'

type Awaitable<T> = T | Promise<T>

/** The parts of a node that commands ask and change. */
export interface CommandParts extends HttpsCommandParts, QueueCommandParts {
  credentials: Credentials
  audit: Audit
  status(): Awaitable<unknown>
  feed: {
    status(): Awaitable<unknown>
    refresh(options: { force: boolean }): Awaitable<unknown>
    /** Undefined, null or an empty list: nothing has this id. */
    lookup(id: string): Awaitable<unknown>
  }
  clients: { list(): Awaitable<unknown>; disconnect(clientId: string): Awaitable<boolean> }
  sessions: {
    list(): Awaitable<unknown>
    drop(clientId: string): Awaitable<boolean>
    /** How many a credential has that outlive their connections. */
    persistentOf(username: string): number
  }
  retained: { list(filter: string): Awaitable<unknown[]>; clear(topic: string): Awaitable<boolean> }
  check(request: { payload: Buffer; institution: string; cls?: EventClass }): Awaitable<unknown>
  config(): Awaitable<unknown>
  /** Resolves when this node knows what other nodes have done until now; rejects when it cannot know. */
  catchUp(): Promise<void>
}

/** Commands that ask the node about itself only. */
const aboutItself: ReadonlySet<string> = new Set(['status', 'config'])

/** Everything the admin socket can be asked (design.md §4). Every change is written to the audit log. */
export function createCommands(parts: CommandParts): Commands {
  const { credentials, audit, feed, clients, sessions, retained } = parts

  // What nobody asks for at that moment is a change all the same.
  credentials.onRevoked((username, cause) => {
    if (cause !== 'schedule') return
    const detail = { reason: 'the time set by its rotation has come' }
    audit
      .record({ who: 'hub', action: 'credentials.revoke', target: username, detail })
      .catch(() => undefined)
  })

  const commands: Commands = {
    status: async () => parts.status(),
    config: async () => parts.config(),
    audit: async () => audit.list(),

    'credentials.add': async (args, who) => {
      const issued = accepted(
        await credentials.add({
          role: text(args, 'role'),
          label: text(args, 'label'),
          institutions: texts(args, 'institutions'),
          classes: texts(args, 'classes'),
          filters: texts(args, 'filters'),
        }),
      )
      const { username, role, institutions, filters, classes } = issued.credential
      const detail = { role, institutions, filters, classes }
      await audit.record({ who, action: 'credentials.add', target: username, detail })
      return shownOnce(issued)
    },
    'credentials.list': async () => credentials.list().map(withSessions),
    'credentials.show': async (args) => withSessions(existing(text(args, 'username'))),
    'credentials.rotate': async (args, who) => {
      const { username } = existing(text(args, 'username'))
      const seconds = optionalNumber(args, 'revokeAfter')
      const rotated = accepted(
        await credentials.rotate(username, seconds === undefined ? {} : { revokeAfterMs: seconds * 1000 }),
      )
      const revokeAt = rotated.revokeAt ?? null
      const detail = { replacedBy: rotated.credential.username, revokeAt }
      await audit.record({ who, action: 'credentials.rotate', target: username, detail })
      return { ...shownOnce(rotated), replaces: rotated.replaces, revokeAt }
    },
    'credentials.revoke': async (args, who) => {
      const username = text(args, 'username')
      if (!(await credentials.revoke(username))) throw unknown('credential', username)
      await audit.record({ who, action: 'credentials.revoke', target: username, detail: null })
      return { username, revoked: true }
    },

    'feed.status': async () => feed.status(),
    'feed.refresh': async (args, who) => {
      const force = args.force === true
      const result = await feed.refresh({ force })
      await audit.record({ who, action: 'feed.refresh', target: 'feed', detail: { force, result } })
      return result
    },
    'feed.lookup': async (args) => {
      const id = text(args, 'id')
      const found = await feed.lookup(id)
      if (found === undefined || found === null || (Array.isArray(found) && found.length === 0)) {
        throw refusal(`the livestream feed does not know ${JSON.stringify(id)}`)
      }
      return found
    },

    'clients.list': async () => clients.list(),
    'clients.disconnect': async (args, who) => {
      const clientId = text(args, 'clientId')
      if (!(await clients.disconnect(clientId))) throw unknown('connected client', clientId)
      await audit.record({ who, action: 'clients.disconnect', target: clientId, detail: null })
      return { clientId, disconnected: true }
    },

    'sessions.list': async () => sessions.list(),
    'sessions.drop': async (args, who) => {
      const clientId = text(args, 'clientId')
      if (!(await sessions.drop(clientId))) throw unknown('session', clientId)
      await audit.record({ who, action: 'sessions.drop', target: clientId, detail: null })
      return { clientId, dropped: true }
    },

    'retained.list': async (args) => retained.list(args.filter === undefined ? '#' : text(args, 'filter')),
    'retained.clear': async (args, who) => {
      const topic = text(args, 'topic')
      if (!(await retained.clear(topic))) throw unknown('retained message on', topic)
      await audit.record({ who, action: 'retained.clear', target: topic, detail: null })
      return { topic, cleared: true }
    },

    ...createHttpsCommands(parts),
    ...createQueueCommands(parts),

    check: async (args) => {
      const institution = text(args, 'institution')
      const cls = args.class === undefined ? undefined : text(args, 'class')
      const wrong = checkInstitution(institution) ?? (cls === undefined ? undefined : checkClass(cls))
      if (wrong !== undefined) throw refusal(wrong)
      const payload = Buffer.from(text(args, 'payload'), 'base64')
      return parts.check({ payload, institution, ...(cls !== undefined && isEventClass(cls) ? { cls } : {}) })
    },
  }
  return Object.fromEntries(
    Object.entries(commands).map(([name, command]) => [
      name,
      aboutItself.has(name) ? command : caughtUp(command),
    ]),
  )

  /** What was done with one node is there for the next command to another. */
  function caughtUp(command: Commands[string]): Commands[string] {
    return async (args, who) => {
      // Without the store, the last that is known is better than nothing.
      await parts.catchUp().catch(() => undefined)
      return command(args, who)
    }
  }

  function withSessions(credential: Credential): Credential & { sessions: number } {
    return { ...credential, sessions: sessions.persistentOf(credential.username) }
  }

  function existing(username: string): Credential {
    const credential = credentials.get(username)
    if (credential === undefined) throw unknown('credential', username)
    return credential
  }
}

/** The answer that carries the password, this once (design.md §4). */
function shownOnce({ credential, password, warning }: IssuedCredential) {
  const { username, role, institutions, filters, classes, createdAt } = credential
  const answer = { username, password, role, institutions, filters, classes, createdAt }
  return warning === undefined ? answer : { ...answer, warning }
}
