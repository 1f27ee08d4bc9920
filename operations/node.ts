import {
  boolean,
  instant,
  integer,
  number,
  one,
  orNull,
  recordOf,
  string,
  stringOrNull,
} from '../event/answer-fields.ts'
import { Type } from '../event/type.ts'
import { trendSeconds } from '../telemetry/trend.ts'
import { limit, text } from './arguments.ts'
import { refusal } from './errors.ts'
import { feedStatus } from './feed.ts'
import { choose } from './lookups/choose.ts'
import { loses, type Of, reads } from './operation.ts'

const status = Type.Object({
  node: string,
  version: string,
  stage: one('test', 'prod'),
  uptime: Type.Integer({ description: 'seconds' }),
  store: Type.Object({
    driver: string,
    ok: boolean,
    problem: stringOrNull,
    isReplaced: Type.Boolean({
      description: 'an empty store has replaced a damaged one, and no operator has accepted that',
    }),
  }),
  feed: feedStatus,
  connections: integer,
  budget: Type.Object({ count: integer, p50: number, p99: number }, { description: 'milliseconds' }),
  certificate: Type.Object({ notAfter: instant, expiryDays: number, ca: stringOrNull }),
  memory: Type.Object({ rss: Type.Integer({ description: 'bytes' }) }),
  workers: Type.Optional(
    Type.Array(
      Type.Object({
        node: string,
        uptime: Type.Integer({ description: 'seconds' }),
        connections: integer,
        rss: Type.Integer({ description: 'bytes' }),
      }),
      { description: 'with `HUB_WORKERS`: each by the name that it has in lists' },
    ),
  ),
  counters: recordOf(number),
})

const trendSample = Type.Object({
  at: instant,
  seconds: number,
  events: recordOf(number),
  deliveries: number,
  connections: integer,
  p50: orNull(number),
  p99: orNull(number),
  exceeded: number,
})

const auditEntry = Type.Object({
  at: instant,
  who: string,
  action: string,
  target: string,
  detail: Type.Unknown(),
  node: Type.Optional(string),
})

export type Status = Of<typeof status>
export type TrendSample = Of<typeof trendSample>

export const nodeOperations = {
  status: reads('what the node does at the moment', {
    console: {
      view: 'node',
      title: 'This node',
      everySeconds: 10,
      columns: [
        'node',
        'version',
        'stage',
        ['Up for', 'uptime'],
        ['Memory', 'memory.rss'],
        ['Workers', 'workers'],
        ['Store', 'store.driver', '{store.problem}'],
        ['State of the store', 'store.ok'],
        ['Counters since the start', 'counters'],
      ],
    },
    isAboutThisNode: true,
    result: status,
    run: (node) => node.status(),
  }),
  trend: reads('how the last hour of this node was, a sample every ten seconds', {
    isAboutThisNode: true,
    hubctl: { about: 'Events by outcome, deliveries, connections, p50 and p99.' },
    result: Type.Object({ node: string, everySeconds: number, samples: Type.Array(trendSample) }),
    run: async ({ hub, trend }) => ({
      node: hub.node,
      everySeconds: trendSeconds,
      samples: await trend(),
    }),
  }),
}

/** Commands that are rarely needed, at the end of the help. */
export const rareOperations = {
  'store.accept': loses('a damaged store was replaced by an empty one: go on with that', {
    console: {
      view: 'node',
      title: 'Go on with the empty store',
      of: 'status',
      where: { 'store.isReplaced': [true] },
      loss: [
        'A damaged store was replaced by an empty one. Credentials, users, sessions and webhooks that are not in the empty one are given up; the damaged files stay where they were moved to.',
      ],
      answer: { title: 'The hub goes on', text: ['The damaged store is in {movedTo}.'] },
    },
    hubctl: {
      about: 'The node is healthy again.',
      done: 'Accepted the new store. The damaged one stays at {movedTo}.',
    },
    result: Type.Object({ accepted: boolean, at: instant, movedTo: string }),
    async run({ storeState }, _args, { note }) {
      const replaced = storeState.replaced()
      if (!replaced) throw refusal('the store was not replaced: there is nothing to accept')
      const { at, movedTo } = replaced
      await note(movedTo, { at })
      await storeState.accept()
      return { accepted: true, at, movedTo }
    },
  }),
  audit: reads('who changed what; with a limit, the last changes', {
    args: {
      who: Type.Optional(text('a user of the operating system, or an e-mail address')),
      action: Type.Optional(text('the name of a command')),
      target: Type.Optional(text('what was changed', 65_535)),
      limit,
    },
    console: {
      view: 'audit',
      title: 'Audit log',
      ask: { limit: 1_000 },
      isNewestLast: true,
      everySeconds: 10,
      empty: 'Nothing was changed yet.',
    },
    result: Type.Array(auditEntry),
    async run({ audit }, { limit, ...wanted }) {
      const entries = choose(await audit.list(), wanted)
      return limit === undefined ? entries : entries.slice(-limit)
    },
  }),
  config: reads('the configuration in effect, secrets masked', {
    console: { view: 'node', title: 'Settings', everySeconds: 60 },
    isAboutThisNode: true,
    result: recordOf(Type.Unknown()),
    run: (node) => node.config(),
  }),
}
