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

const shownLink = {
  title: 'The link works once and is shown only now',
  text: ['Hand it to {email}: it leads to a page where a password is chosen. It ends {expiresAt}.'],
  secrets: { resetUrl: 'Link' },
}

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
    console: {
      view: 'users',
      title: 'Add a user',
      fields: {
        email: { label: 'E-mail address', hint: '' },
        permissions: {
          label: 'May',
          hint: '',
          usual: 'publish\nsubscribe',
          choices: {
            publish: 'send events over HTTPS',
            subscribe: 'read events, and have webhooks',
            operate: 'everything in this console',
          },
        },
      },
      answer: shownLink,
    },
    result: added,
  }),
  'users.list': reads('all users of the HTTPS API', {
    args: {
      institution: Type.Optional(institution),
      permission: Type.Optional(oneOf(...permissions)),
      limit,
    },
    console: {
      view: 'users',
      title: 'Users',
      empty: 'There is no user.',
      columns: [
        ['E-mail', 'email'],
        'institutionId',
        ['May', 'permissions'],
        ['Has a password', 'hasPassword'],
        ['Made', 'createdAt'],
      ],
    },
    result: Type.Array(user),
  }),
  'users.remove': loses(
    'remove a user; its tokens end at once, its subscriptions stay with the institution',
    {
      args: { email },
      example: { email: anEmail },
      console: {
        view: 'users',
        title: 'Remove',
        of: 'users.list',
        by: 'email',
        loss: [
          '{email} cannot log in any more, and all its log-ins end at once ({permissions}).',
          'Subscriptions that it made stay with its institution.',
        ],
      },
      result: Type.Object({ email: string, userId: string, removed: boolean }),
    },
  ),
  'users.reset-password': changes(
    'make a link to choose a new password; the old one works until it is used',
    {
      args: { email },
      example: { email: anEmail },
      console: { view: 'users', title: 'Reset link', of: 'users.list', by: 'email', answer: shownLink },
      result: Type.Object(resetLink),
    },
  ),
}
