import { instant, integer, orNull, string } from '../../event/answer-fields.ts'
import { attempt } from '../../event/outcome-schemas.ts'
import { Type } from '../../event/type.ts'
import { instant as instantArgument, text } from '../arguments.ts'
import { subscriptionStates } from '../queues.ts'
import { listedSubscription, named, shownSubscription, subscriptionOperations } from '../subscriptions.ts'
import { alters, type OwnOperation, shows } from './row.ts'

const deadLetter = Type.Object({ messageId: string, givenUpAt: instant, tries: integer, reason: string })

const { institutionId: _listed, ...listed } = listedSubscription.properties
const { institutionId: _shown, paused: _paused, ...shown } = shownSubscription.properties

const ownSubscription = Type.Object({
  ...shown,
  paused: orNull(
    Type.Object({
      at: instant,
      by: string,
      mayResume: Type.Boolean({ description: 'false: an operator of the hub paused it' }),
    }),
  ),
  attempts: Type.Array(attempt, { description: 'the last 50, newest first' }),
  letters: Type.Array(deadLetter, { description: 'what was given up, at most 100' }),
})

const maxLetters = 100
const placed = { view: 'own-subscriptions', of: 'institution.subscriptions.list', by: 'name' } as const

export const ownSubscriptions = {
  'subscriptions.list': shows('the webhooks of the institution, and how it goes with them', {
    permission: 'subscribe',
    at: 'GET /institution/subscriptions',
    console: {
      view: 'own-subscriptions',
      title: 'Webhooks',
      empty: 'Your institution has no webhook.',
      columns: [
        ['Webhook', 'name', '{url}'],
        ['Livestream', 'livestream.title'],
        ['State', 'state', '{lastReason}'],
        ['Waiting', 'pending'],
        ['Oldest', 'oldest'],
        'deadLetters',
      ],
    },
    result: Type.Array(Type.Object(listed)),
    run: async (own) => (await own.subscriptions.list()).map(({ institutionId: _own, ...one }) => one),
  }),
  'subscriptions.show': shows('one of them, with its last deliveries and what was given up', {
    permission: 'subscribe',
    at: 'GET /institution/subscriptions/{name}',
    ...named,
    console: {
      ...placed,
      title: 'Webhook',
      heading: 'url',
      columns: [
        'state',
        ['In this state since', 'since'],
        ['Livestream', 'livestream.title'],
        ['Other livestreams', 'livestreams'],
        'kinds',
        'types',
        ['Waiting', 'pending'],
        'oldest',
        'nextTry',
        ['Failures in a row', 'failures'],
        'lastReason',
        'deadLetters',
        ['Passed over', 'stale'],
        ['Paused', 'paused.at', 'by {paused.by}'],
        ['Disabled', 'disabled.at', '{disabled.reason}'],
        'contact',
        'serviceAccount',
        ['Signed with a secret', 'signed'],
        ['Worth delivering', 'maxAge'],
        ['Order', 'ordering'],
        ['Made', 'createdAt'],
        ['Name', 'name'],
        ['Last deliveries', 'attempts'],
        ['Given up', 'letters'],
      ],
    },
    result: ownSubscription,
    async run(own, { name }) {
      const { institutionId: _own, letters, ...shown } = await own.subscriptions.show(name)
      return {
        ...shown,
        letters: letters.slice(0, maxLetters).map(({ messageId, givenUpAt, tries, reason }) => {
          return { messageId, givenUpAt, tries, reason }
        }),
      }
    },
  }),
  'subscriptions.test': alters(
    'send a marked test message to a webhook now; if it is acknowledged, a disabled one is enabled',
    {
      permission: 'subscribe',
      at: 'POST /institution/subscriptions/{name}/test',
      ...named,
      console: {
        ...placed,
        title: 'Test',
        patienceSeconds: 30,
        answer: {
          title: 'The test message',
          columns: [
            'delivered',
            ['Answer', 'delivery.status'],
            ['Why', 'delivery.reason'],
            ['Took', 'delivery.duration'],
          ],
        },
      },
      result: subscriptionOperations['subscriptions.test'].result,
      run: (own, { name }, change) => own.subscriptions.test(name, change),
    },
  ),
  'subscriptions.pause': alters('send nothing to a webhook until it is resumed; its events are collected', {
    permission: 'subscribe',
    at: 'POST /institution/subscriptions/{name}/pause',
    ...named,
    console: {
      ...placed,
      title: 'Pause',
      where: { state: subscriptionStates.filter((state) => state !== 'paused') },
    },
    result: subscriptionOperations['subscriptions.pause'].result,
    run: (own, { name }, change) => own.subscriptions.pause(name, change),
  }),
  'subscriptions.resume': alters('end a pause, and send what was collected, in its order', {
    permission: 'subscribe',
    at: 'POST /institution/subscriptions/{name}/resume',
    ...named,
    console: { ...placed, title: 'Resume', where: { state: ['paused'] } },
    result: subscriptionOperations['subscriptions.resume'].result,
    run: (own, { name }, change) => own.subscriptions.resume(name, change),
  }),
  'subscriptions.replay': alters(
    'send once more what was given up, all or one message, or all events since a time',
    {
      permission: 'subscribe',
      at: 'POST /institution/subscriptions/{name}/replay',
      args: {
        ...named.args,
        messageId: Type.Optional(text('the id of a message that was given up')),
        since: Type.Optional(instantArgument),
      },
      example: named.example,
      console: {
        ...placed,
        title: 'Replay',
        fields: {
          messageId: { label: 'Only this message', hint: 'Empty: all that was given up' },
          since: { label: 'Or all events since', hint: 'Delivered or not' },
        },
        answer: { title: 'Replay', text: ['{replayed|message} will be sent once more.'] },
      },
      check: ({ messageId, since }) =>
        since !== undefined && messageId !== undefined
          ? 'since is for all events: leave out messageId'
          : undefined,
      result: Type.Object({ name: string, replayed: integer }),
      run: (own, { name, ...asked }, change) => own.subscriptions.replay(name, asked, change),
    },
  ),
} satisfies Record<string, OwnOperation>
