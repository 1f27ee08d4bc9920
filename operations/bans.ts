import { boolean, instant, one, string } from '../event/answer-fields.ts'
import { Type } from '../event/type.ts'
import { type BanKind, banKinds, problemOfBan } from '../listener/bans.ts'
import { oneOf, text } from './arguments.ts'
import { refusal, unknownName } from './errors.ts'
import { changes, reads } from './operation.ts'

const ban = Type.Object({
  kind: one(...banKinds),
  value: string,
  reason: string,
  since: instant,
  until: instant,
})

const kind = oneOf<BanKind>(...banKinds)
const value = text('an IP address or network, the name of a credential, or a client id', 65_535)
const mostSeconds = 365 * 24 * 3600

/** The bans: who is kept out for a time. */
export const banOperations = {
  'bans.list': reads('who is kept out, why and until when', {
    console: {
      view: 'clients',
      title: 'Bans',
      empty: 'No bans.',
      columns: ['kind', 'value', 'reason', 'since', 'until'],
    },
    hubctl: { columns: ['kind', 'value', 'reason', 'since', 'until'], nothing: 'No bans.' },
    result: Type.Array(ban),
    run: ({ bans }) => bans.list(),
  }),
  'bans.add': changes('keep an address, a credential or a client id out for a time', {
    args: {
      kind,
      value,
      for: Type.Number({
        exclusiveMinimum: 0,
        maximum: mostSeconds,
        description: 'a number of seconds, at most 365 days',
      }),
      reason: text('a reason'),
    },
    example: { kind: 'address', value: '192.0.2.0/24', for: 3600, reason: 'guesses passwords' },
    console: {
      view: 'clients',
      title: 'Ban',
      fields: {
        kind: { label: 'What is banned' },
        value: { label: 'Address, credential or client id', hint: '192.0.2.0/24 is a network.' },
        for: {
          label: 'For how long',
          usual: '3600',
          choices: {
            900: '15 minutes',
            3600: '1 hour',
            86400: '1 day',
            604800: '7 days',
            2592000: '30 days',
          },
        },
        reason: { label: 'Why', hint: 'For those who find it later. The client does not learn it.' },
      },
    },
    hubctl: {
      typed: {
        for: ['--for <duration>', 'until then: 30m, 24h, 7d …'],
        reason: ['--reason <text>', 'why, for those who find it later'],
      },
      done: 'Banned {kind} {value} until {until}.',
      about:
        'Its connections end at once. An address is kept from all ports, the others from MQTT, and a reader from HTTPS. A client may choose another client id.',
    },
    check: ({ kind, value }) => problemOfBan(kind, value),
    result: ban,
    async run({ bans, credentials }, { kind, value, for: seconds, reason }, { note }) {
      if (kind === 'user' && !credentials.get(value)) throw unknownName('credential', value)
      const now = Date.now()
      const until = new Date(now + seconds * 1000).toISOString()
      const added = { kind, value, reason, since: new Date(now).toISOString(), until }
      const problem = await bans.add(added, () => note(`${kind} ${value}`, { reason, until }))
      if (problem !== undefined)
        throw refusal('there are 1,000 bans, the most that there can be: remove some')
      return added
    },
  }),
  'bans.remove': changes('let somebody in again', {
    args: { value },
    example: { value: '192.0.2.0/24' },
    console: { view: 'clients', title: 'Remove', of: 'bans.list', by: 'value' },
    hubctl: { done: 'Removed the ban of {value}.' },
    result: Type.Object({ value: string, removed: boolean }),
    async run({ bans }, { value }, { note }) {
      if ((await bans.remove(value, () => note(value, null))) === 0) throw unknownName('ban of', value)
      return { value, removed: true }
    },
  }),
}
