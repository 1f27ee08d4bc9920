import { type EventKind, eventClasses, eventKinds } from '../event/kind.ts'
import { checkTopic, feedbackTopic, inboxTopic, radioTopic } from '../event/topic.ts'
import { code, type ReferencePage, table } from './page.ts'

/** What publishers send and subscribers get: topics, kinds of events, classes. */
export function eventKindsPage(): ReferencePage {
  const classes = eventClasses.map((cls) => eventKinds.filter((kind) => kind.class === cls))
  return {
    name: 'event-kinds',
    title: 'Events and topics',
    about: 'All topics, and the kinds of events with their fields, their life time and an example.',
    text: [topics(), kinds(), lifeTime(classes), ...classes.flatMap(classSection)].join('\n\n'),
  }
}

function topics(): string {
  const [institution, livestream] = ['{institutionId}', '{livestreamId}']
  const inboxes = eventClasses.map((cls) => [inboxTopic(institution, cls), `only events of class ${cls}`])
  const rows = [
    ...[
      [inboxTopic(institution), 'events of an institution'],
      ...inboxes,
      [checkTopic(institution), 'a dry run: reported, nothing else'],
    ].map((row) => [...row, 'its publishers', 'no client']),
    [feedbackTopic(institution), 'a report about each event', 'the hub', 'its publishers'],
    ...eventKinds.map((kind) => {
      return [radioTopic(livestream, kind), `${kind.about}, retained`, 'the hub', 'subscribers']
    }),
  ]
  const cells = rows.map(([topic = '', ...rest]) => [code(topic), ...rest])
  return `## Topics\n\n${table(['topic', 'content', 'writes', 'reads'], cells)}`
}

function kinds(): string {
  const rows = eventKinds.map(({ name, about, class: cls, timeField, doors, isPushed }) => {
    const over = doors.map((door) => door.toUpperCase()).join(', ')
    return [code(name), about, cls, code(timeField), over, isPushed ? 'yes' : 'no']
  })
  return `## Kinds

Of one topic, the event with the latest time counts.

${table(['`event`', 'tells', 'class', 'its time', 'published over', 'to webhooks'], rows)}`
}

function lifeTime(classes: readonly EventKind[][]): string {
  const rows = classes.flatMap((ofClass) => {
    const topics = code(...ofClass.map(({ suffix }) => `…/${suffix}`))
    return ofClass.slice(0, 1).map(({ class: cls, life }) => {
      return [cls, topics, life.holds, life.ends, life.afterReturn]
    })
  })
  const back = 'when you [come back](subscribers.md#when-you-come-back) you get'
  return `## Classes and their life time\n\n${table(['class', 'topics', 'valid is', 'ends', back], rows)}`
}

/** A section, or none if the class has no kinds. */
function classSection([first]: readonly EventKind[]): string[] {
  if (first === undefined) return []
  const { name, class: cls, schema, example, refused } = first
  const { $id, required, properties, additionalProperties } = Object(schema)
  const fields = Object.entries<Property>(properties).map(([field, property]) => {
    const isRequired = field === 'event' || required.includes(field)
    return [code(field), isRequired ? 'required' : '', typeOf(property), property.description ?? '']
  })
  const changes = refused.map(({ change, path, errorCode }) => {
    const made = Object.entries(change).map(([field, value]) => {
      return value === undefined ? `no ${code(field)}` : code(`"${field}": ${JSON.stringify(value)}`)
    })
    return [made.join(', '), code(path), code(errorCode)]
  })
  return [
    `## Class ${cls}

${table(['field', '', 'type', ''], fields)}

Further fields are ${additionalProperties ? 'passed on' : 'refused'}. A node has the schema at \`/schemas/${$id}.json\`.

\`\`\`json
${JSON.stringify({ event: name, ...example }, undefined, 2)}
\`\`\`

The example is refused with one of these changes:

${table(['change', 'path', '`errorCode`'], changes)}`,
  ]
}

/** What this page says of a property of a JSON Schema. */
interface Property {
  description?: string
  type?: string | string[]
  enum?: string[]
  items?: { $ref?: string; type?: string }
}

function typeOf({ type = [], enum: values, items }: Property): string {
  if (values) return code(...values)
  const of = items?.$ref ?? items?.type
  return [type]
    .flat()
    .map((one) => (one === 'array' ? `list of ${of}` : one))
    .join(' or ')
}
