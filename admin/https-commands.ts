import type { Lifecycle, TrackReport } from '../lifecycle/lifecycle.ts'
import { isTrack } from '../lifecycle/track.ts'
import type { SigningKeys } from '../users/signing-keys.ts'
import type { ResetToken, Users } from '../users/users.ts'
import { accepted, text, texts, unknown } from './arguments.ts'
import type { Audit } from './audit.ts'
import { type Commands, refusal } from './socket.ts'

/** The parts of a node behind the HTTPS API. */
export interface HttpsCommandParts {
  users: Users
  /** Where a person chooses a password. */
  resetUrl(token: string): string
  keys: SigningKeys
  lifecycle: Lifecycle
}

/** Users, signing keys and the life cycle of the HTTPS API (design.md §4, §9). */
export function createHttpsCommands(parts: HttpsCommandParts & { audit: Audit }): Commands {
  const { users, resetUrl, keys, lifecycle, audit } = parts
  return {
    'users.add': async (args, who) => {
      const request = {
        email: text(args, 'email'),
        institution: text(args, 'institution'),
        permissions: texts(args, 'permissions'),
      }
      const added = accepted(await users.add(request))
      const { userId, institutionId, permissions } = added.user
      const detail = { userId, institutionId, permissions }
      await audit.record({ who, action: 'users.add', target: added.user.email, detail })
      const { warning } = added
      return warning === undefined ? shownOnce(added) : { ...shownOnce(added), warning }
    },
    'users.list': async () => users.list(),
    'users.remove': async (args, who) => {
      const email = text(args, 'email')
      const userId = await users.remove(email)
      if (userId === undefined) throw unknown('user', email)
      await audit.record({ who, action: 'users.remove', target: email, detail: { userId } })
      return { email, userId, removed: true }
    },
    'users.reset-password': async (args, who) => {
      const email = text(args, 'email')
      const reset = await users.issueReset(email, 'operator')
      if (!reset) throw unknown('user', email)
      const detail = { userId: reset.user.userId, expiresAt: reset.expiresAt }
      await audit.record({ who, action: 'users.reset-password', target: reset.user.email, detail })
      return shownOnce(reset)
    },

    'keys.list': async () => keys.list(),
    'keys.rotate': async (args, who) => {
      const dropOld = args.dropOld === true
      const key = await keys.rotate({ dropOld })
      await audit.record({ who, action: 'keys.rotate', target: key.kid, detail: { dropOld } })
      return { ...key, dropOld }
    },

    'lifecycle.status': async () => lifecycle.status(),
    'lifecycle.announce': async (args, who) => {
      const request = { track: text(args, 'track'), sunset: text(args, 'sunset'), link: text(args, 'link') }
      const report = accepted(await lifecycle.announce(request))
      await audit.record({
        who,
        action: 'lifecycle.announce',
        target: report.track,
        detail: standing(report),
      })
      return report
    },
    'lifecycle.retire': async (args, who) => {
      const track = text(args, 'track')
      if (!isTrack(track)) throw refusal(`there is no track ${JSON.stringify(track)}`)
      const report = accepted(await lifecycle.retire(track))
      await audit.record({ who, action: 'lifecycle.retire', target: track, detail: standing(report) })
      return report
    },
  }

  /** The answer that carries the token, this once (design.md §4). */
  function shownOnce({ user, token, expiresAt }: ResetToken) {
    const { email, userId } = user
    return { email, userId, resetToken: token, resetUrl: resetUrl(token), expiresAt }
  }
}

function standing({ state, sunset, link }: TrackReport) {
  return { state, sunset, link }
}
