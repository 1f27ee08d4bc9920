import t from 'tap'
import { commands } from '../../cli/commands.ts'
import { createPrinter } from '../../cli/print.ts'

/*
 * An answer can hold any text. Strangers choose titles and client ids, or run the hub at `--url`.
 */
const hostile = '\u001b[2J\u009b5m\u202eEVIL'

/** The fields that commands print. Each holds the hostile text here. */
const names = [
  ...[
    'node',
    'version',
    'username',
    'password',
    'resetUrl',
    'email',
    'name',
    'topic',
    'clientId',
    'state',
    'kid',
    'livestreamId',
    'subscribers',
    'ofAll',
  ],
  ...['at', 'by', 'pending', 'deadLetters', 'replayed', 'warning', 'revokeAt', 'track', 'problem', 'movedTo'],
  ...[
    'id',
    'event',
    'title',
    'artist',
    'outcome',
    'institutionId',
    'eventTime',
    'creator',
    'queue',
    'url',
    'contact',
    'leftOut',
  ],
  ...['source', 'reason', 'institution'],
]
const leaf = { ...Object.fromEntries(names.map((name) => [name, hostile])), [hostile]: hostile }
const answer = {
  ...leaf,
  ...{
    store: leaf,
    feed: leaf,
    differences: {
      added: { count: 2, items: [leaf] },
      owners: { count: 1, items: [{ ...leaf, before: leaf, after: leaf }] },
      renamed: { count: 1, items: [{ ...leaf, before: hostile, after: hostile }] },
    },
    refused: { ...leaf, text: hostile },
    report: leaf,
    livestream: leaf,
    stages: leaf,
  },
  topics: [{ ...leaf, newer: leaf }],
  ...{
    nodes: [leaf],
    deliveries: [{ ...leaf, attempts: [leaf] }],
    errors: [leaf],
    events: [leaf],
    services: [hostile],
  },
}

for (const command of commands) {
  t.test(`hubctl ${command.words} prints nothing that a terminal acts upon`, async (t) => {
    for (const result of [answer, [answer]]) {
      const printed = command.print?.(result, createPrinter({})) ?? ''
      t.notMatch(printed, /(?!\n)[\p{Cc}\p{Cf}]/u)
    }
  })
}
