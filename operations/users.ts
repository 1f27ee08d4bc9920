import { permissions, type User } from '../bridge-https/users/user.ts'
import type { ResetToken } from '../bridge-https/users/users.ts'
import { boolean, instant, one, string } from '../event/answer-fields.ts'
import { Type } from '../event/type.ts'
import { eitherOf, email, institution, limit, listOf, oneOf } from './arguments.ts'
import { unknownName, unlessError } from './errors.ts'
import { anEmail, anInstitution } from './examples.ts'
import { choose } from './lookups/choose.ts'
import type { NodeParts } from './node-parts.ts'
import { changes, loses, reads } from './operation.ts'

const user = Type.Object({
  userId: string,
  email: string,
  institutionId: string,
  permissions: Type.Array(one(...permissions)),
  emailVerified: Type.Boolean({ description: 'whether a link that was mailed to the address has been used' }),
  createdAt: instant,
  hasPassword: boolean,
})

const resetLink = { email: string, userId: string, resetToken: string, resetUrl: string, expiresAt: instant }

const added = Type.Object({ ...resetLink, warning: Type.Optional(string) })

const shownLink = {
  title: 'The link works once and is shown only now',
  text: ['Hand it to {email}: it leads to a page where a password is chosen. It ends {expiresAt}.'],
  secrets: { resetUrl: 'Link' },
}

const handItOn = 'The link works once and is shown only now: hand it on.'

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
    hubctl: {
      typed: {
        email: ['--email <email>', 'e-mail address, the name to log in with'],
        institution: ['--institution <urn>', 'institution the user belongs to'],
        permissions: [
          '--permission <permission>',
          `${eitherOf(permissions)} (repeat); without it publish and subscribe`,
        ],
      },
      note: handItOn,
    },
    result: added,
    async run({ users, resetUrl }, { email, institution, permissions = [] }, { note }) {
      const made = unlessError(
        await users.add({ email, institution, permissions }, (user) => {
          const { userId, institutionId, permissions } = user
          return note(user.email, { userId, institutionId, permissions })
        }),
      )
      const { warning } = made
      return { ...shownOnce(made, resetUrl), ...(warning !== undefined && { warning }) }
    },
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
    hubctl: {
      columns: [
        'email',
        'userId',
        ['INSTITUTION', 'institutionId'],
        'permissions',
        ['PASSWORD', 'hasPassword'],
        'createdAt',
      ],
    },
    result: Type.Array(user),
    run: ({ users }, { institution, permission, limit }) =>
      choose(users.list(), { institutionId: institution, permissions: permission }, limit),
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
      hubctl: { done: 'Removed {email}.' },
      result: Type.Object({ email: string, userId: string, removed: boolean }),
      async run({ users }, { email }, { note }) {
        const { userId } = existing(users, email)
        await note(email, { userId })
        if ((await users.remove(email)) === undefined) throw unknownName('user', email)
        return { email, userId, removed: true }
      },
    },
  ),
  'users.reset-password': changes(
    'make a link to choose a new password; the old one works until it is used',
    {
      args: { email },
      example: { email: anEmail },
      console: { view: 'users', title: 'Reset link', of: 'users.list', by: 'email', answer: shownLink },
      hubctl: { note: handItOn },
      result: Type.Object(resetLink),
      async run({ users, resetUrl }, { email }, { note }) {
        const { userId, email: known } = existing(users, email)
        await note(known, { userId })
        const reset = await users.issueReset(email, 'operator')
        if (!reset) throw unknownName('user', email)
        return shownOnce(reset, resetUrl)
      },
    },
  ),
}

function existing(users: NodeParts['users'], email: string): User {
  const user = users.find(email)
  if (!user) throw unknownName('user', email)
  return user
}

/** The only answer that carries the token (design.md §4). */
function shownOnce({ user, token, expiresAt }: ResetToken, resetUrl: NodeParts['resetUrl']) {
  const { email, userId } = user
  return { email, userId, resetToken: token, resetUrl: resetUrl(token), expiresAt }
}
