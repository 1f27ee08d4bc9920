import { boolean, instant, orNull, string } from '../../event/answer-fields.ts'
import { Type } from '../../event/type.ts'
import { username } from '../arguments.ts'
import { aUsername } from '../examples.ts'
import type { Own } from './own.ts'
import { ends, type OwnOperation, shows } from './row.ts'

const credential = Type.Object({
  username: string,
  label: string,
  classes: Type.Array(string, { description: 'classes that it is limited to; empty: all' }),
  createdAt: instant,
  revokeAt: orNull(instant, 'when it ends by itself'),
  lastUsedAt: orNull(instant, 'null: never, or not within the last 400 days'),
  connected: Type.Integer({ description: 'clients that are connected with it' }),
  isShared: Type.Boolean({
    description: 'it publishes for other institutions, too: operators alone revoke it',
  }),
  mayGo: Type.Boolean({ description: 'whether nothing seems to need it' }),
  why: string,
})

const unusedDays = 30
const dayMs = 24 * 3600 * 1000

export const ownCredentials = {
  'credentials.list': shows(
    'the credentials that publish for the institution, when each was used, and which may go',
    {
      permission: 'publish',
      at: 'GET /institution/credentials',
      console: {
        view: 'own-credentials',
        title: 'Credentials',
        empty: 'No credential publishes for your institution: an operator of the hub makes one.',
        columns: [
          ['Username', 'username', 'ends {revokeAt}', 'It publishes for other institutions, too.{isShared?}'],
          ['Only classes', 'classes'],
          'connected',
          ['Last used', 'lastUsedAt'],
          ['Made', 'createdAt'],
          ['May it go?', 'mayGo', '{why}'],
        ],
        everySeconds: 10,
      },
      result: Type.Array(credential),
      async run(own) {
        const connected = await own.credentials.connected()
        const list = own.credentials.list()
        return list.map((one) => ({
          username: one.username,
          label: one.label,
          classes: [...one.classes],
          createdAt: one.createdAt,
          revokeAt: one.revokeAt ?? null,
          lastUsedAt: one.lastUsedAt,
          connected: connected.get(one.username) ?? 0,
          isShared: one.isShared,
          ...judged(one, connected.get(one.username) ?? 0, list, Date.now()),
        }))
      },
    },
  ),
  'credentials.revoke': ends(
    'end a credential that publishes for the institution alone, and disconnect who uses it',
    {
      permission: 'publish',
      at: 'POST /institution/credentials/{username}/revoke',
      args: { username },
      example: { username: aUsername },
      console: {
        view: 'own-credentials',
        title: 'Revoke',
        of: 'institution.credentials.list',
        by: 'username',
        where: { isShared: [false] },
        loss: [
          'Whoever logs in as {username} is refused from now on.',
          '{connected|connected client} will be disconnected.',
        ],
      },
      result: Type.Object({ username: string, revoked: boolean }),
      async run(own, args, change) {
        await own.credentials.revoke(args.username, change)
        return { username: args.username, revoked: true }
      },
    },
  ),
} satisfies Record<string, OwnOperation>

type OwnCredential = ReturnType<Own['credentials']['list']>[number]

/** Whether a credential may go, with the reason. `now`: milliseconds since the epoch. */
function judged(one: OwnCredential, connected: number, all: readonly OwnCredential[], now: number) {
  const keep = (why: string) => ({ mayGo: false, why })
  const go = (why: string) => ({ mayGo: true, why })
  if (one.isShared) return keep('other institutions may need it')
  if (connected > 0) return keep('a client is connected with it')
  const successor = all.find((other) => isSuccessor(other, one))
  if (successor) return go(`${successor.username} was made after it, may do the same, and is used`)
  if (one.lastUsedAt !== null && now - Date.parse(one.lastUsedAt) < unusedDays * dayMs)
    return keep(`it was used within ${unusedDays} days`)
  if (now - Date.parse(one.createdAt) < unusedDays * dayMs)
    return keep(`nobody used it yet, but it was made within ${unusedDays} days`)
  return go(`nobody used it for ${unusedDays} days`)
}

/**
 * Whether `other` has taken the place of a credential: it is newer, may do all of that, and was used since. A use of a shared
 * one may be that of another institution.
 */
function isSuccessor(other: OwnCredential, { username, createdAt, lastUsedAt, classes }: OwnCredential) {
  const mayDoTheSame =
    other.classes.length === 0 || (classes.length > 0 && classes.every((cls) => other.classes.includes(cls)))
  return (
    other.username !== username &&
    !other.isShared &&
    other.createdAt > createdAt &&
    other.lastUsedAt !== null &&
    other.lastUsedAt > (lastUsedAt ?? '') &&
    other.revokeAt === undefined &&
    mayDoTheSame
  )
}
