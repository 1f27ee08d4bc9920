import type { Credential, IssuedCredential as Issued } from '../acl/credentials.ts'
import { checkCredentialRequest, maxRevokeAfterMs, roles } from '../acl/permissions.ts'
import { boolean, instant, instantOrNull, one, orNull, string, texts } from '../event/answer-fields.ts'
import { eventClasses } from '../event/kind.ts'
import { Type } from '../event/type.ts'
import {
  eitherOf,
  errorOf,
  institution,
  label,
  limit,
  listOf,
  oneOf,
  radioFilter,
  text,
  username,
} from './arguments.ts'
import { unknownName, unlessError } from './errors.ts'
import { anInstitution, aUsername } from './examples.ts'
import { choose } from './lookups/choose.ts'
import type { NodeParts } from './node-parts.ts'
import { changes, loses, reads } from './operation.ts'

const permissions = {
  username: string,
  role: one(...roles),
  institutions: texts,
  filters: texts,
  classes: texts,
  createdAt: instant,
  clientIdPrefix: Type.Optional(Type.String({ description: 'what its client ids must begin with' })),
}

const credential = Type.Object({
  ...permissions,
  label: string,
  revokeAt: Type.Optional(instant),
  user: Type.Optional(Type.String({ description: 'whose page got this temporary credential' })),
  sessions: Type.Integer({ description: 'persistent sessions' }),
  lastUsedAt: orNull(instant, 'null: never, or not within the last 400 days'),
})

const issued = {
  ...permissions,
  password: Type.String({ description: 'shown once' }),
  warning: Type.Optional(string),
}

const issuedCredential = Type.Object(issued)

const shownPassword = {
  title: 'The password is shown only now',
  secrets: { username: 'Username', password: 'Password' },
}

const storeIt = 'The password is shown only now: store it.'

export const credentialOperations = {
  'credentials.add': changes('make a credential; its password is shown once', {
    args: {
      role: oneOf(...roles),
      label,
      institutions: Type.Optional(
        listOf('institution URNs (urn:org:institution:<id>) that a publisher may publish for', institution),
      ),
      classes: Type.Optional(
        listOf(`classes that a publisher is limited to: ${eventClasses.join(', ')}`, oneOf(...eventClasses)),
      ),
      filters: Type.Optional(
        listOf('topic filters within radio/# that a subscriber or reader may read', radioFilter),
      ),
      clientIdPrefix: Type.Optional(
        text('what the client ids of a publisher or subscriber must begin with', 64),
      ),
    },
    example: { role: 'publisher', label: 'kw1', institutions: [anInstitution] },
    console: {
      view: 'credentials',
      title: 'Add a credential',
      fields: {
        role: {
          choices: {
            publisher: 'Publisher: sends events',
            subscriber: 'Subscriber: reads events',
            reader: 'Reader: reads over HTTPS',
          },
        },
        institutions: { where: { role: ['publisher'] } },
        classes: { label: 'Only these classes', where: { role: ['publisher'] } },
        filters: { where: { role: ['subscriber', 'reader'] } },
        clientIdPrefix: { where: { role: ['publisher', 'subscriber'] } },
      },
      answer: shownPassword,
    },
    hubctl: {
      typed: {
        role: ['--role <role>', eitherOf(roles)],
        label: ['--label <label>', 'part of the username: a-z, 0-9 and "-"'],
        institutions: ['--institution <urn>', 'institution it may publish for (repeat for several)'],
        classes: ['--class <class>', `limit a publisher to ${eitherOf(eventClasses)} (repeat)`],
        filters: ['--allow <filter>', 'topics a subscriber or reader may read, within radio/# (repeat)'],
        clientIdPrefix: ['--client-id-prefix <text>', 'what the client ids of its clients must begin with'],
      },
      note: storeIt,
    },
    check: (request) => errorOf(checkCredentialRequest(request)),
    result: issuedCredential,
    async run({ credentials }, { institutions = [], classes = [], filters = [], ...request }, { note }) {
      const wanted = { ...request, institutions, classes, filters }
      const issued = await credentials.add(
        wanted,
        ({ username, role, institutions, filters, classes, ...rest }) => {
          const { clientIdPrefix } = rest
          const prefix = clientIdPrefix === undefined ? {} : { clientIdPrefix }
          return note(username, { role, institutions, filters, classes, ...prefix })
        },
      )
      return shownOnce(unlessError(issued))
    },
  }),
  'credentials.list': reads('all credentials', {
    args: {
      role: Type.Optional(oneOf(...roles)),
      institution: Type.Optional(institution),
      limit,
    },
    console: {
      view: 'credentials',
      title: 'Credentials',
      empty: 'There is no credential yet.',
      // Each open page has a credential of its own. They would hide the others.
      first: { name: 'Without pages', where: { user: [null] } },
      related: { list: 'clients.list', by: 'username', noun: 'client' },
      columns: [
        ['Username', 'username', 'a page of {user}', 'ends {revokeAt}'],
        'role',
        ['May', 'institutions', 'filters', 'classes'],
        ['Connected', 'related'],
        ['Last used', 'lastUsedAt'],
        ['Made', 'createdAt'],
      ],
    },
    hubctl: {
      columns: [
        'username',
        'role',
        'label',
        'institutions',
        'classes',
        ['ALLOWED', 'filters'],
        'sessions',
        'lastUsedAt',
        'createdAt',
        ['REVOKED AT', 'revokeAt'],
        ['TEMPORARY FOR', 'user'],
      ],
    },
    result: Type.Array(credential),
    run: (node, { role, institution, limit }) =>
      choose(node.credentials.list(), { role, institutions: institution }, limit).map((found) =>
        withUse(node, found),
      ),
  }),
  'credentials.show': reads('one credential', {
    args: { username },
    example: { username: aUsername },
    result: credential,
    run: (node, { username }) => withUse(node, existing(node, username)),
  }),
  'credentials.rotate': changes(
    'make a credential with the same permissions; the old one stays until it is revoked',
    {
      args: {
        username,
        revokeAfter: Type.Optional(
          Type.Number({ exclusiveMinimum: 0, description: 'a number of seconds, more than 0' }),
        ),
      },
      example: { username: aUsername, revokeAfter: 86_400 },
      console: {
        view: 'credentials',
        title: 'Rotate',
        of: 'credentials.list',
        by: 'username',
        where: { user: [null] },
        notice: ['It ends {revokeAt}: it has been rotated already.'],
        fields: {
          revokeAfter: {
            label: 'The old one goes on working',
            usual: '86400',
            choices: {
              60: 'for 1 minute',
              3600: 'for 1 hour',
              86400: 'for 1 day',
              604800: 'for 7 days',
              2592000: 'for 30 days',
              '': 'until somebody revokes it',
            },
          },
        },
        answer: {
          ...shownPassword,
          columns: [
            ['Takes the place of', 'replaces'],
            ['Which ends', 'revokeAt'],
          ],
        },
      },
      hubctl: {
        typed: { revokeAfter: ['--revoke-after <duration>', 'revoke the old one after 90s, 30m, 24h, 7d …'] },
        note: storeIt,
      },
      check: ({ revokeAfter = 0 }) =>
        revokeAfter * 1000 > maxRevokeAfterMs ? 'revokeAfter must be a duration of at most 3650d' : undefined,
      result: Type.Object({ ...issued, replaces: string, revokeAt: instantOrNull }),
      async run(node, { username: named, revokeAfter }, { note }) {
        const { username } = existing(node, named)
        const options = revokeAfter === undefined ? {} : { revokeAfterMs: revokeAfter * 1000 }
        const rotated = unlessError(
          await node.credentials.rotate(username, options, (next, revokeAt) =>
            note(username, { replacedBy: next.username, revokeAt: revokeAt ?? null }),
          ),
        )
        return { ...shownOnce(rotated), replaces: rotated.replaces, revokeAt: rotated.revokeAt ?? null }
      },
    },
  ),
  'credentials.revoke': loses('end a credential and disconnect everybody who uses it', {
    args: { username },
    example: { username: aUsername },
    console: {
      view: 'credentials',
      title: 'Revoke',
      of: 'credentials.list',
      by: 'username',
      loss: [
        'Whoever logs in as {username} is refused from now on.',
        '{related|connected client} will be disconnected.',
        'What waits for {sessions|session} stays, for a credential with the same permissions.',
      ],
    },
    hubctl: { done: 'Revoked {username}.' },
    result: Type.Object({ username: string, revoked: boolean }),
    async run(node, args, { note }) {
      const { username } = existing(node, args.username)
      await note(username, null)
      if (!(await node.credentials.revoke(username))) throw unknownName('credential', username)
      return { username, revoked: true }
    },
  }),
}

function existing({ credentials }: NodeParts, username: string): Credential {
  const credential = credentials.get(username)
  if (credential === undefined) throw unknownName('credential', username)
  return credential
}

function withUse({ broker, lastUsed }: NodeParts, credential: Credential) {
  const { username } = credential
  return {
    ...credential,
    sessions: broker.known.persistentOf(username).size,
    lastUsedAt: lastUsed(username) ?? null,
  }
}

/** The only answer that carries the password (design.md §4). */
function shownOnce({ credential, password, warning }: Issued) {
  const { label: _label, revokeAt: _revokeAt, user: _user, ...permissions } = credential
  const answer = { ...permissions, password }
  return warning === undefined ? answer : { ...answer, warning }
}
