import { boolean, instantOrNull, integer, orNull, string, stringOrNull } from '../event/answer-fields.ts'
import { Type } from '../event/type.ts'
import { text } from './arguments.ts'
import { refusal } from './errors.ts'
import { anId } from './examples.ts'
import type { NodeParts } from './node-parts.ts'
import { changes, type Of, reads } from './operation.ts'

const status = {
  source: Type.String({ description: 'the configured source, without passwords and tokens' }),
  loadedFrom: stringOrNull,
  items: integer,
  loadedAt: instantOrNull,
  ok: boolean,
  checkedAt: instantOrNull,
  reason: stringOrNull,
  problem: stringOrNull,
  ignoredCanaries: Type.Array(string, {
    description: 'livestreams of `feedCanaries` that the feed in use lacks',
  }),
}
export const feedStatus = Type.Object(status)

const listed = { id: string, title: string, institution: string }
const owner = Type.Object({ publisher: string, institution: string })
const part = <Item extends Parameters<typeof Type.Array>[0]>(item: Item) =>
  Type.Object({ count: integer, items: Type.Array(item) })

const livestream = Type.Object({
  id: string,
  type: string,
  externalId: string,
  title: string,
  publisher: Type.Object({ id: string, externalId: string, title: string }),
  institution: Type.Object({ id: string, title: string, acronym: string }),
})

const differences = Type.Object({
  added: part(Type.Object(listed)),
  removed: part(Type.Object(listed)),
  owners: part(Type.Object({ ...listed, before: owner, after: owner })),
  renamed: part(Type.Object({ ...listed, before: string, after: string })),
  retitled: Type.Object({ count: integer }),
})

const diff = Type.Object({
  source: string,
  loadedFrom: stringOrNull,
  itemsBefore: integer,
  items: orNull(integer),
  reason: stringOrNull,
  problem: stringOrNull,
  differences: orNull(differences),
})

export type Livestream = Of<typeof livestream>
export type FeedPart = Of<typeof differences>['added' | 'removed' | 'owners' | 'renamed']

export const livestreamColumns = [
  'id',
  'title',
  'externalId',
  ['PUBLISHER', 'publisher.id'],
  ['INSTITUTION', 'institution.id'],
] as const

export const feedOperations = {
  'feed.status': reads('the livestream feed in use', {
    console: {
      view: 'feed',
      title: 'Feed',
      columns: [
        ['State', 'ok'],
        'problem',
        ['Livestreams', 'items'],
        'source',
        ['In use is the one from', 'loadedFrom'],
        ['Read', 'loadedAt'],
        ['Checked', 'checkedAt'],
        ['Canaries that it lacks', 'ignoredCanaries'],
      ],
    },
    result: feedStatus,
    async run({ feed }) {
      await feed.takenOver()
      return feed.status()
    },
  }),
  'feed.refresh': changes('read the livestream feed now', {
    args: {
      force: Type.Optional(
        Type.Boolean({ description: 'true to take it even if a guard holds it back, or false' }),
      ),
    },
    console: {
      view: 'feed',
      title: 'Read it now',
      of: 'feed.status',
      fields: { force: { label: 'Also if a guard holds it back', hint: '' } },
      answer: { title: 'What came of reading it', columns: ['items', 'itemsBefore'] },
    },
    hubctl: {
      about: 'A [guard](operators.md#the-livestream-feed) may hold a feed back.',
      typed: {
        force: [
          '--force',
          'accept it even if it shrank, grew, or lacks a canary or the institution of a publisher',
        ],
      },
    },
    result: Type.Object({ ...status, itemsBefore: integer }),
    async run({ audit, feed }, { force = false }, { who, note }) {
      await note('feed', { force })
      const refreshed = await feed.refresh({ force })
      const { ok, problem } = refreshed
      if (!ok)
        await audit.record({ who, action: 'feed.refresh', target: 'feed', detail: { failed: problem } })
      return refreshed
    },
  }),
  'feed.diff': reads(
    'what would change if the livestream feed were read now, and whether it would be refused',
    {
      console: {
        view: 'feed',
        title: 'Show what would change',
        of: 'feed.status',
        answer: { title: 'What would change' },
      },
      result: diff,
      run: ({ feed }) => feed.diff(),
    },
  ),
  'feed.lookup': reads(
    'livestreams by their id, external id or publisher, or by part of a name, also of the institution; without it, all',
    {
      args: { id: Type.Optional(text('an id, or part of a name')) },
      example: { id: anId },
      hubctl: { typed: { id: '[id]' }, columns: livestreamColumns },
      result: Type.Array(livestream),
      async run({ feed }, { id }) {
        await feed.takenOver()
        const found = await feed.lookup(id)
        if (found.length === 0) throw refusal(whyNotFound(feed, id))
        return found
      },
    },
  ),
}

function whyNotFound(feed: NodeParts['feed'], id: string | undefined): string {
  if (!feed.current()) return 'this node has no livestream feed: hubctl feed status says why'
  if (id === undefined) return 'the livestream feed is empty'
  return `the livestream feed does not know ${JSON.stringify(id)}`
}
