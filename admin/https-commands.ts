import type { Lifecycle } from '../bridge-https/lifecycle/lifecycle.ts'
import { isTrack } from '../bridge-https/lifecycle/track.ts'
import type { User } from '../bridge-https/users/user.ts'
import type { ResetToken, Users } from '../bridge-https/users/users.ts'
import type { SigningKeys } from '../certs/signing-keys.ts'
import type { ShownQueue } from '../delivery/queue-list.ts'
import { choose } from '../operations/choose.ts'
import type { CommandsOf } from '../operations/operations.ts'
import { refusal, unknownName, unlessError } from '../operations/refusal.ts'
import type { Audit } from './audit.ts'
import type { QueueCommandParts } from './queue-commands.ts'

/** The parts of a node behind the HTTPS API. */
export interface HttpsCommandParts {
  users: Users
  /** URL of the page on which a person chooses a password with this token. */
  resetUrl(token: string): string
  keys: SigningKeys
  lifecycle: Lifecycle
}

/** The commands about users, signing keys and the life cycle of the HTTPS API (design.md §4, §9). */
export function createHttpsCommands(
  parts: HttpsCommandParts & QueueCommandParts & { audit: Audit },
): CommandsOf<'users' | 'keys' | 'lifecycle'> {
  const { users, resetUrl, keys, queues, lifecycle, audit } = parts
  return {
    'users.add': async (args, who) => {
      const request = {
        email: args.email,
        institution: args.institution,
        permissions: args.permissions ?? [],
      }
      const added = await audit.change(who, 'users.add', async (first) => {
        return unlessError(
          await users.add(request, ({ userId, email, institutionId, permissions }) =>
            first(email, { userId, institutionId, permissions }),
          ),
        )
      })
      const { warning } = added
      return warning === undefined ? shownOnce(added) : { ...shownOnce(added), warning }
    },
    'users.list': async ({ institution, permission, limit }) =>
      choose(users.list(), { institutionId: institution, permissions: permission }, limit),
    'users.remove': async (args, who) => {
      const email = args.email
      const { userId } = existing(email)
      await audit.change(who, 'users.remove', async (first) => {
        await first(email, { userId })
        if ((await users.remove(email)) === undefined) throw unknownName('user', email)
      })
      return { email, userId, removed: true }
    },
    'users.reset-password': async (args, who) => {
      const email = args.email
      const { userId, email: known } = existing(email)
      const reset = await audit.change(who, 'users.reset-password', async (first) => {
        await first(known, { userId })
        const issued = await users.issueReset(email, 'operator')
        if (!issued) throw unknownName('user', email)
        return issued
      })
      return shownOnce(reset)
    },

    'keys.list': async ({ limit }) => choose(keys.list(), {}, limit),
    'keys.rotate': async (args, who) => {
      const dropOld = args.dropOld === true
      const key = await audit.change(who, 'keys.rotate', (first) =>
        keys.rotate({
          dropOld,
          first: ({ kid, signsFrom }) => first(kid, { dropOld, signsFrom }),
        }),
      )
      return { ...key, dropOld, mayRefuse: dropOld ? await receivers() : [] }
    },

    'lifecycle.status': async () => lifecycle.status(),
    'lifecycle.announce': async (args, who) => {
      const request = { track: args.track, sunset: args.sunset, link: args.link }
      return audit.change(who, 'lifecycle.announce', async (first) => {
        const { track, sunset, link } = request
        await first(track, { state: 'deprecated', sunset, link })
        return unlessError(await lifecycle.announce(request))
      })
    },
    'lifecycle.brownout': async ({ track, for: seconds }, who) =>
      audit.change(who, 'lifecycle.brownout', async (first) => {
        await first(track, { seconds })
        return unlessError(await lifecycle.brownout(track, seconds))
      }),
    'lifecycle.retire': async (args, who) => {
      const track = args.track
      if (!isTrack(track)) throw refusal(`there is no track ${JSON.stringify(track)}`)
      return audit.change(who, 'lifecycle.retire', async (first) => {
        const { sunset, link } = lifecycle.of(track)
        await first(track, { state: 'gone', sunset, link })
        return unlessError(await lifecycle.retire(track))
      })
    },
  }

  /** The receivers of pushes and plugin work. Their copies of the key set may lack the newest key. */
  async function receivers(): Promise<Pick<ShownQueue, 'name' | 'target' | 'contact'>[]> {
    const pushedTo = (await queues.list()).filter(({ state }) => state !== 'closed' && state !== 'no target')
    return pushedTo.map(({ name, target, contact }) => ({ name, target, contact }))
  }

  function existing(email: string): User {
    const user = users.find(email)
    if (!user) throw unknownName('user', email)
    return user
  }

  /** The only answer that carries the token (design.md §4). */
  function shownOnce({ user, token, expiresAt }: ResetToken) {
    const { email, userId } = user
    return { email, userId, resetToken: token, resetUrl: resetUrl(token), expiresAt }
  }
}
