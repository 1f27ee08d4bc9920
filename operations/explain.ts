import { one, string } from '../event/answer-fields.ts'
import { type Check, checkOf, checks } from '../event/error.ts'
import { remedyOf } from '../event/remedy.ts'
import { Type } from '../event/type.ts'
import { text } from './arguments.ts'
import { eventNamed, type ShownEvent, toShown } from './events.ts'
import type { NodeParts } from './node-parts.ts'
import { type Of, reads } from './operation.ts'

const step = Type.Object({
  step: string,
  result: one('done', 'passed', 'failed', 'not reached', 'waits', 'not known'),
  detail: string,
})
type Step = Of<typeof step>

/** What the hub did with one event, from the history, in words. */
export const explainOperation = {
  explain: reads('what the hub did with one event, step by step: from its arrival to each receiver', {
    args: { id: text('the id or the position of an event') },
    example: { id: '505315548641748030472978432' },
    hubctl: {
      typed: { id: '<event>' },
      about:
        'Who sent it, each check, to whom it went, which webhook still waits, and how long each stage took, as far as the history knows. `hubctl events list` has ids and positions.',
      columns: ['step', 'result', 'detail'],
    },
    result: Type.Array(step),
    async run(node, { id }) {
      const event = await toShown(node, await eventNamed(node, id))
      return [...arrival(event, node), ...judgement(event), ...distribution(event), ...deliveries(event)]
    },
  }),
}

function arrival(
  { at, institutionId, services, report, id, position }: ShownEvent,
  { feed }: NodeParts,
): Step[] {
  const listed = feed.current()?.byId.get(services[0] ?? '')?.institution
  const title = listed?.id === institutionId ? `${listed?.title}, ` : ''
  const whose = institutionId === null ? '' : ` for ${title}${institutionId}`
  const named = id === null ? `at position ${position}` : `as event ${id}`
  const result = report ? 'done' : 'not known'
  const door = { mqtt: `over MQTT from client ${JSON.stringify(report?.clientId)}`, https: 'over HTTPS' }
  const by = doorOf(report)
  return [{ step: 'arrival', result, detail: `${at}${by ? ` ${door[by]}` : ''}${whose}, ${named}` }]
}

/** The door at which an event came in. Undefined: its report is not kept, or of a release that did not say. */
function doorOf(report: ShownEvent['report']): 'mqtt' | 'https' | undefined {
  if (report?.clientId === undefined) return undefined
  return report.clientId === null ? 'https' : 'mqtt'
}

/** The checks in their order, and the decision. */
function judgement({ errors, outcome, dryRun, report }: ShownEvent): Step[] {
  const isOverHttps = doorOf(report) === 'https'
  const names = Object.keys(checks) as Check[]
  const failed = new Map(
    names.map((name) => [name, errors.filter((error) => checkOf(error.errorCode) === name)]),
  )
  let isOver = false
  const steps = names.flatMap((name): Step[] => {
    const found = failed.get(name) ?? []
    const isOfOtherDoor = isOverHttps ? ['topic', 'class'].includes(name) : name === 'topic of the livestream'
    if (found.length === 0 && isOfOtherDoor) return []
    const result = found.length > 0 ? 'failed' : isOver ? 'not reached' : 'passed'
    // The size over all livestreams is checked last, that of the event itself before all else.
    if (found.some(({ path }) => path !== '.services') && checks[name].ends) isOver = true
    const why = found.map(({ path, message, errorCode }) => {
      const remedy = remedyOf(errorCode)
      return `${path} ${message} (${errorCode})${remedy === null ? '' : `: ${remedy}`}`
    })
    return [{ step: `check: ${name}`, result, detail: why.length > 0 ? why.join('; ') : checks[name].does }]
  })
  const warned = Array.isArray(report?.warnings) ? report.warnings : []
  const warnings = warned.map(
    ({ path, message }): Step => ({ step: 'warning', result: 'done', detail: `${path} ${message}` }),
  )
  const decided = `${outcome ?? 'not known'}${dryRun ? ', a dry run: nothing else was done' : ''}`
  return [...steps, ...warnings, { step: 'decision', result: 'done', detail: decided }]
}

/** The stages, and who got it over MQTT. */
function distribution({ stages, nodes, topics, outcome, dryRun }: ShownEvent): Step[] {
  if (outcome !== 'published' || dryRun) return []
  const took: Step = stages
    ? {
        step: 'stages',
        result: 'done',
        detail: `decided after ${ms(stages.decided)}, stored after ${ms(stages.stored)}, written to subscribers after ${ms(stages.written)}, by ${stages.node}`,
      }
    : { step: 'stages', result: 'not known', detail: 'nodes remember the times of their last events only' }
  const received = nodes.map(({ node, recipients }): Step => {
    if (recipients === null)
      return { step: 'subscribers', result: 'not known', detail: `${node} does not remember` }
    return { step: 'subscribers', result: 'done', detail: `${recipients} connected clients of ${node}` }
  })
  const shown = topics.map(({ topic, retained, newer }): Step => {
    const newerTitle = newer?.title ? `: ${JSON.stringify(newer.title)}` : ''
    const why = newer ? `a newer event was there already${newerTitle}` : 'it is not shown any more'
    return { step: 'topic', result: 'done', detail: `${topic}: ${retained ? 'new subscribers get it' : why}` }
  })
  return [took, ...received, ...shown]
}

/** Webhooks and plugin targets: what they have answered, and what still waits. */
function deliveries({ deliveries: all }: ShownEvent): Step[] {
  return all.map(({ queue, target, state, held, behind, attempts: [last, ...others] }) => {
    const results = {
      delivered: 'done',
      settled: 'done',
      stale: 'done',
      'dead letter': 'failed',
      waiting: 'waits',
      retrying: 'waits',
    } as const
    const tried =
      last && `${others.length + 1} tries, last ${last.time}: ${last.reason ?? `answered ${last.status}`}`
    const parts = [state, held, behind && `behind event ${behind}`, tried].filter(Boolean)
    return {
      step: 'delivery',
      result: results[state],
      detail: `${queue} (${target ?? 'gone'}): ${parts.join(', ')}`,
    }
  })
}

function ms(value: number): string {
  return `${Math.round(value * 100) / 100} ms`
}
