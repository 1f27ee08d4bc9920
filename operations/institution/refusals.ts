import { integer, orNull, string } from '../../event/answer-fields.ts'
import { eventClasses } from '../../event/kind.ts'
import { problem, receivers, warning } from '../../event/outcome-schemas.ts'
import { remedyOf } from '../../event/remedy.ts'
import { Type } from '../../event/type.ts'
import { type EventRow, isOf } from '../../journal/history/event-row.ts'
import { oneOf, position, text } from '../arguments.ts'
import { checked, listedEvent, shownEvent, stages } from '../events.ts'
import type { Of } from '../operation.ts'
import type { Own, OwnLivestream } from './own.ts'
import { type OwnOperation, shows } from './row.ts'

const remedy = orNull(string, 'what mends it; null: there is nothing to do')
const mendedError = Type.Object({ ...problem.properties, remedy })
const mendedWarning = Type.Object({ ...warning.properties, remedy })
const mended = { errors: Type.Array(mendedError), warnings: Type.Array(mendedWarning) }

const mendedEvent = Type.Object({ ...listedEvent.properties, ...mended })

const eventsOfWeek = Type.Object({
  events: Type.Array(mendedEvent),
  next: orNull(integer, 'the `before` of the next page; null: the last page'),
})

const { deliveries: _deliveries, nodes: _nodes, ...ofEvent } = shownEvent.properties
const ownEvent = Type.Object({
  ...ofEvent,
  ...mended,
  stages: orNull(Type.Object(stages)),
  receivers,
})

export type ListedOwnEvent = Of<typeof mendedEvent>
export type OwnEvent = Of<typeof ownEvent>

const weekMs = 7 * 24 * 3600 * 1000
const defaultLimit = 100

/** The arguments of both lists. */
const ofList = {
  livestream: Type.Optional(text('the id of a livestream')),
  before: Type.Optional(position),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 200, description: 'a whole number from 1 to 200' }),
  ),
}

export const ownRefusals = {
  'refusals.list': shows('what was refused or warned of within a week, newest first, and what mends it', {
    permission: 'publish',
    at: 'GET /institution/refusals',
    args: { only: Type.Optional(oneOf('refused', 'warned')), ...ofList },
    example: { only: 'refused', limit: 20 },
    console: { view: 'own-refusals', title: 'Refusals' },
    result: eventsOfWeek,
    run: (own, { only, ...asked }) =>
      listed(
        own,
        asked,
        (row) =>
          !row.dryRun &&
          ((only !== 'warned' && row.errors.length > 0) ||
            (only !== 'refused' && row.warnings !== undefined)),
      ),
  }),
  'events.list': shows('the events of a week, whatever became of them, newest first', {
    permission: 'publish',
    at: 'GET /institution/events',
    args: { item: Type.Optional(text('a playlistItemId')), ...ofList },
    example: { item: 'kw1-0042', limit: 20 },
    console: { view: 'own-events', title: 'Events' },
    result: eventsOfWeek,
    run: (own, { item, ...asked }) =>
      listed(own, asked, (row) => item === undefined || row.playlistItemId === item),
  }),
  'events.show': shows(
    'what the hub made of one event: by its id, or, where it was refused, by its position',
    {
      permission: 'publish',
      at: 'GET /institution/events/{id}',
      args: { id: text('the id or the position of an event') },
      example: { id: '505315548641748030472978432' },
      result: ownEvent,
      async run(own, { id }) {
        const event = await own.events.show(id)
        return withRemedies(event)
      },
    },
  ),
  check: shows('dry run: what would become of an event that is published over MQTT, and what mends it', {
    permission: 'publish',
    at: 'POST /institution/check',
    args: {
      event: Type.String({ maxLength: 1_000_000, description: 'an event as text, as it would be sent' }),
      class: Type.Optional(oneOf(...eventClasses)),
    },
    example: { event: '{"event":"de.org.hub.v1.radio.track.playing"}' },
    console: { view: 'own-check', title: 'Dry run' },
    result: Type.Object({ ...checked.properties, ...mended }),
    async run(own, { event, class: topicClass }) {
      const report = await own.events.check(Buffer.from(event), topicClass)
      return { ...report, ...withRemedies({ errors: report.errors, warnings: report.warnings }) }
    },
  }),
} satisfies Record<string, OwnOperation>

/** The events of a week that are asked for and meant, with what mends them. */
async function listed(
  own: Own,
  { livestream: id, before, limit = defaultLimit }: { livestream?: string; before?: number; limit?: number },
  isMeant: (row: EventRow) => boolean,
) {
  const livestream = id === undefined ? undefined : own.livestreams.named(id)
  const { events, next } = await own.events.list({
    since: Date.now() - weekMs,
    before,
    limit,
    isMeant: (row) => isMeant(row) && (livestream === undefined || isOf(row, namesOf(livestream))),
  })
  return { events: events.map(withRemedies), next }
}

/** The row with what mends each of its errors and warnings. */
function withRemedies<Row extends Pick<EventRow, 'errors' | 'warnings'>>({
  errors,
  warnings = [],
  ...row
}: Row) {
  const mend = <Item extends { errorCode: string }>(item: Item) => ({
    ...item,
    remedy: remedyOf(item.errorCode),
  })
  return { ...row, errors: errors.map(mend), warnings: warnings.map(mend) }
}

function namesOf({ id, externalId }: OwnLivestream) {
  return { id, ...(externalId !== null && { externalId }) }
}
