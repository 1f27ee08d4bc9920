import { permissions } from '../bridge-https/users/user.ts'
import { Type } from '../event/type.ts'
import { email, institution, limit, listOf, oneOf } from './arguments.ts'
import { anEmail, anInstitution } from './examples.ts'
import { changes, loses, type Of, reads } from './operation.ts'
import { boolean, instant, one, string } from './results.ts'

const user = Type.Object({
  userId: string,
  email: string,
  institutionId: string,
  permissions: Type.Array(one(...permissions)),
  emailVerified: Type.Boolean({ description: 'whether a link that was mailed to the address has been used' }),
  createdAt: instant,
  hasPassword: boolean,
})

/** The only answer that carries the token (design.md §4). */
const resetLink = { email: string, userId: string, resetToken: string, resetUrl: string, expiresAt: instant }

const added = Type.Object({ ...resetLink, warning: Type.Optional(string) })

export type ResetLink = Of<typeof added>
export type ShownUser = Of<typeof user>

export const userOperations = {
  'users.add': changes('make a user of the HTTPS API; the link to choose a password is shown once', {
    args: {
      email,
      institution,
      permissions: Type.Optional(
        listOf(`permissions: ${permissions.join(', ')}; none means the first two`, oneOf(...permissions)),
      ),
    },
    example: { email: anEmail, institution: anInstitution, permissions: ['publish'] },
    result: added,
  }),
  'users.list': reads('all users of the HTTPS API', {
    args: {
      institution: Type.Optional(institution),
      permission: Type.Optional(oneOf(...permissions)),
      limit,
    },
    result: Type.Array(user),
  }),
  'users.remove': loses(
    'remove a user; its tokens end at once, its subscriptions stay with the institution',
    {
      args: { email },
      example: { email: anEmail },
      result: Type.Object({ email: string, userId: string, removed: boolean }),
    },
  ),
  'users.reset-password': changes(
    'make a link to choose a new password; the old one works until it is used',
    { args: { email }, example: { email: anEmail }, result: Type.Object(resetLink) },
  ),
}
