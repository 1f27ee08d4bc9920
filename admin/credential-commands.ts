import type { Credential, Credentials, IssuedCredential } from '../acl/credentials.ts'
import { choose } from '../operations/choose.ts'
import type { CommandsOf } from '../operations/operations.ts'
import { unknownName, unlessError } from '../operations/refusal.ts'
import type { Audit } from './audit.ts'

export interface CredentialCommandParts {
  credentials: Credentials
  /** When a client last logged in with the credential, ISO 8601. */
  lastUsed(username: string): string | undefined
  sessions: {
    /** How many persistent sessions a credential has. */
    persistentOf(username: string): number
  }
}

/** The commands about MQTT credentials (design.md §5). */
export function createCredentialCommands(
  parts: CredentialCommandParts & { audit: Audit },
): CommandsOf<'credentials'> {
  const { credentials, lastUsed, sessions, audit } = parts
  return {
    'credentials.add': async (args, who) => {
      const request = {
        role: args.role,
        label: args.label,
        institutions: args.institutions ?? [],
        classes: args.classes ?? [],
        filters: args.filters ?? [],
      }
      const issued = await audit.change(who, 'credentials.add', async (first) => {
        return unlessError(
          await credentials.add(request, ({ username, role, institutions, filters, classes }) =>
            first(username, { role, institutions, filters, classes }),
          ),
        )
      })
      return shownOnce(issued)
    },
    'credentials.list': async ({ role, institution, limit }) =>
      choose(credentials.list(), { role, institutions: institution }, limit).map(withUse),
    'credentials.show': async (args) => withUse(existing(args.username)),
    'credentials.rotate': async (args, who) => {
      const { username } = existing(args.username)
      const seconds = args.revokeAfter
      const options = seconds === undefined ? {} : { revokeAfterMs: seconds * 1000 }
      const rotated = await audit.change(who, 'credentials.rotate', async (first) => {
        return unlessError(
          await credentials.rotate(username, options, (next, revokeAt) =>
            first(username, { replacedBy: next.username, revokeAt: revokeAt ?? null }),
          ),
        )
      })
      return { ...shownOnce(rotated), replaces: rotated.replaces, revokeAt: rotated.revokeAt ?? null }
    },
    'credentials.revoke': async (args, who) => {
      const { username } = existing(args.username)
      await audit.change(who, 'credentials.revoke', async (first) => {
        await first(username, null)
        if (!(await credentials.revoke(username))) throw unknownName('credential', username)
      })
      return { username, revoked: true }
    },
  }

  function withUse(credential: Credential) {
    const { username } = credential
    return {
      ...credential,
      sessions: sessions.persistentOf(username),
      lastUsedAt: lastUsed(username) ?? null,
    }
  }

  function existing(username: string): Credential {
    const credential = credentials.get(username)
    if (credential === undefined) throw unknownName('credential', username)
    return credential
  }
}

/** The only answer that carries the password (design.md §4). */
function shownOnce({ credential, password, warning }: IssuedCredential) {
  const { username, role, institutions, filters, classes, createdAt } = credential
  const answer = { username, password, role, institutions, filters, classes, createdAt }
  return warning === undefined ? answer : { ...answer, warning }
}
