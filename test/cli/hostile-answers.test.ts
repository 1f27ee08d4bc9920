import t from 'tap'
import { commands } from '../../cli/commands.ts'
import { createPrinter } from '../../cli/print.ts'

/*
 * Titles and client ids are chosen by strangers, and with --url a hub may be anybody's.
 */
const hostile = '\u001b[2J\u009b5m\u202eEVIL'

/** Whatever a command asks of its answer is hostile text, a list of one, or an object with the same inside. */
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
    'queue',
    'url',
    'contact',
    'leftOut',
  ],
]
const leaf = { ...Object.fromEntries(names.map((name) => [name, hostile])), [hostile]: hostile }
const answer = {
  ...leaf,
  ...{
    store: leaf,
    feed: leaf,
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
