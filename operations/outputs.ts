import {
  boolean,
  instant,
  instantOrNull,
  integer,
  one,
  orNull,
  string,
  stringOrNull,
} from '../event/answer-fields.ts'
import { Type } from '../event/type.ts'
import { limit, livestream, oneOf, text } from './arguments.ts'
import { refusal, unknownName } from './errors.ts'
import { anId } from './examples.ts'
import { choose } from './lookups/choose.ts'
import { livestreamsNamed } from './lookups/livestreams.ts'
import type { NodeParts } from './node-parts.ts'
import { changes, reads } from './operation.ts'

const states = ['shown', 'idle text', 'test', 'sending', 'retrying', 'nothing'] as const
const results = ['acknowledged', 'refused', 'failed'] as const

const lane = Type.Object({
  name: string,
  driver: string,
  livestreamId: string,
  there: Type.String({ description: 'what the other side calls the livestream' }),
  state: one(...states),
  title: orNull(string, 'the title that the other side has'),
  since: instantOrNull,
  acknowledged: integer,
  failed: integer,
  stale: Type.Integer({ description: 'elements that were over before the other side had them' }),
  failures: Type.Integer({ description: 'failed attempts in a row' }),
  nextTry: instantOrNull,
  lastReason: stringOrNull,
})

const line = Type.Object({
  time: instant,
  result: one(...results, 'stale'),
  title: stringOrNull,
  duration: orNull(Type.Number(), 'milliseconds'),
  reason: stringOrNull,
  count: Type.Optional(Type.Integer({ description: 'elements that were passed over' })),
  last: Type.Optional(instant),
})

const ofLane = { name: text('the name of an output'), livestream }

/** The commands about outputs (open.md §5). */
export const outputOperations = {
  'outputs.list': reads('what outputs show of each livestream, and how the other side answers', {
    args: {
      name: Type.Optional(text('the name of an output')),
      state: Type.Optional(oneOf(...states)),
      limit,
    },
    hubctl: {
      columns: [
        'name',
        'driver',
        'there',
        'state',
        'title',
        'since',
        'acknowledged',
        'failed',
        'stale',
        'lastReason',
      ],
      nothing: 'No output is configured, or none is chosen.',
      about: 'Counts are those since the start of the node that delivers.',
    },
    console: {
      view: 'outputs',
      title: 'Outputs',
      columns: [
        ['Output', 'name', '{driver}: {there}'],
        ['Livestream', 'livestreamId'],
        'state',
        ['Shows', 'title'],
        'since',
        ['Taken', 'acknowledged'],
        'failed',
        ['Passed over', 'stale'],
        ['Last answer', 'lastReason', 'Tried again {nextTry}.'],
      ],
      empty: 'No output is configured.',
    },
    result: Type.Array(lane),
    run: async (node, { limit, ...wanted }) =>
      choose(await node.deliveries.outputs.list(), wanted, limit).map((lane) => ({
        ...lane,
        lastReason: lane.lastReason ?? (isUnknown(node, lane.livestreamId) ? unknownLivestream : null),
      })),
  }),
  'outputs.log': reads('the last deliveries of a livestream of an output, newest first', {
    args: ofLane,
    example: { name: 'web', livestream: anId },
    hubctl: {
      about: 'At most 20, since the start of the nodes.',
      typed: { livestream: ['--livestream <id>', 'id, external id or title of a livestream'] },
      columns: ['time', 'result', 'count', 'title', ['MS', 'duration'], 'reason'],
      nothing: 'Nothing was tried yet.',
    },
    result: Type.Array(line),
    run: async (node, args) => {
      const { id } = await chosen(node, args)
      const lines = await node.deliveries.outputs.log(args.name, id)
      if (!lines) throw unknownName('output', args.name)
      return lines
    },
  }),
  'outputs.test': changes('send a made-up title to an output, and show request and answer', {
    args: ofLane,
    example: { name: 'web', livestream: anId },
    hubctl: {
      about: 'What plays comes back 10 s later. Secrets are masked.',
      typed: { livestream: ['--livestream <id>', 'id, external id or title of a livestream'] },
    },
    console: {
      view: 'outputs',
      title: 'Test',
      of: 'outputs.list',
      by: 'name',
      given: { livestream: 'livestreamId' },
      notice: ['A made-up title goes out. What plays comes back 10 s later.'],
      answer: { title: 'Test of an output' },
      patienceSeconds: 60,
    },
    result: Type.Object({
      name: string,
      livestreamId: string,
      delivered: boolean,
      reason: stringOrNull,
      request: Type.String({ description: 'what was sent, without secrets' }),
      status: orNull(integer),
      answer: orNull(string, 'null: none that can be read'),
    }),
    async run(node, args, { note }) {
      const { id } = await chosen(node, args)
      await note(args.name, { livestreamId: id })
      const attempt = await node.deliveries.outputs.test(args.name, id)
      if (attempt === 'unknown') throw unknownName('output', args.name)
      if (attempt === undefined)
        throw refusal('no node delivers this livestream of the output at the moment: try again')
      const { result, reason, request, status, answer } = attempt
      const delivered = result === 'acknowledged'
      return { name: args.name, livestreamId: id, delivered, reason, request, status, answer }
    },
  }),
}

const unknownLivestream = 'neither the feed nor a topic has a livestream of this id'

/** Whether no event of this livestream can come. False as long as there is no feed. */
function isUnknown({ feed, topics }: NodeParts, id: string): boolean {
  const listed = feed.current()?.byId
  return listed !== undefined && !listed.get(id) && !topics.stored.get(id)
}

/** The livestream of an output that is meant. */
async function chosen(node: NodeParts, { name, livestream }: { name: string; livestream: string }) {
  const lanes = (await node.deliveries.outputs.list()).filter((one) => one.name === name)
  if (lanes.length === 0) throw unknownName('output', name)
  const named = [livestream, ...(await livestreamsNamed(node, livestream)).map(({ id }) => id)]
  const found = lanes.filter(({ livestreamId }) => named.includes(livestreamId))
  const [only, ...others] = found
  if (!only) throw refusal(`the output ${name} has no livestream ${JSON.stringify(livestream)}`)
  if (others.length > 0) throw refusal(`${found.length} livestreams are called so: give the id`)
  return { id: only.livestreamId }
}
