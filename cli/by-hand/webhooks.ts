import { attemptColumns } from '../../operations/queues.ts'
import type { ByHand } from '../command.ts'

/** Webhooks and plugin targets. */
export const webhooks: ByHand = {
  'queues.dead-letters': { summary: 'what was given up, and why; --json shows every attempt' },
  'queues.replay': {
    summary:
      'send once more what was given up, all or one message, or with --since all events of a webhook from then on; enables a disabled subscription',
    print: (result, printer) =>
      printer.sentence(
        result.replayed === 0
          ? 'Nothing to send once more. What waits is tried now: {name}.'
          : 'Sending {replayed} once more, from {name}.',
        result,
      ),
  },
  'subscriptions.show': {
    print: ({ attempts, ...subscription }, printer) =>
      `${printer.properties(subscription)}\n\n${printer.list(attempts, attemptColumns, 'Nothing was tried yet.')}`,
  },
  'subscriptions.test': {
    print: ({ delivery }, printer) => printer.list([delivery], attemptColumns, ''),
    succeeded: ({ delivered }) => delivered,
  },
  'subscriptions.resume': {
    warning: ({ state }) =>
      state === 'disabled'
        ? 'nothing is sent: its webhook answered 410 and it is disabled; a replay or an acknowledged test message enables it'
        : undefined,
  },
}
