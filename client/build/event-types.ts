import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { components } from '../../bridge-https/description/openapi.ts'
import { eventKinds, eventSchemas } from '../../event/kind.ts'

/*
 * Makes client/events.ts, the types and kinds of events, from what the hub checks events with. They are in the
 * repository, so that nothing has to be made before the first type check.
 */

const generator = fileURLToPath(import.meta.resolve('json-schema-to-typescript/dist/src/cli.js'))

/** The source text of client/events.ts. */
export function eventTypes(): string {
  const definitions = eventDefinitions()
  const events = Object.keys(definitions).filter((name) => name.endsWith('Event'))
  const root = {
    title: 'HubEvent',
    description: 'An event of any kind, as publishers send it',
    anyOf: events.map((name) => ({ $ref: `#/$defs/${name}` })),
    $defs: definitions,
  }
  const style = ['--style.singleQuote', '--no-style.semi', '--style.printWidth=110']
  const options = [...style, '--bannerComment', '/* Made by `npm run docs` from event/kinds/. */']
  const types = execFileSync(process.execPath, [generator, ...options], {
    input: JSON.stringify(root),
    encoding: 'utf8',
  })
  return types + kinds()
}

/** Writes `EventOfKind`, and the table `eventKinds`. */
function kinds(): string {
  const types = kindsOfClients().map(({ kind, schema }) => `  ${kind}: ${schema}`)
  const rows = kindsOfClients().map(({ name, schema: _, ...row }) => {
    const fields = Object.entries(row).map(([field, value]) => `    ${field}: ${literal(value)},`)
    return [`  '${name}': {`, ...fields, '  },'].join('\n')
  })
  return `/**
 * The events by the last level of their topics.
 */
export interface EventOfKind {
${types.join('\n')}
}
/**
 * What the name of an event says.
 */
export const eventKinds = {
${rows.join('\n')}
} as const
`
}

/** The kinds with what programs of clients use of them. `schema`: name of the type. */
export function kindsOfClients() {
  return eventKinds.map(({ name, suffix, class: cls, timeField, slotField, endField, schema }) => {
    const kind = suffix.replace(/^.*\//, '')
    return { name, schema: String(Object(schema).$id), kind, class: cls, timeField, slotField, endField }
  })
}

function literal(value: string | undefined): string {
  return value === undefined ? 'undefined' : `'${value}'`
}

/** The schemas of events by name, which refer to each other below `$defs`. */
export function eventDefinitions() {
  return components(eventSchemas, (name) => `#/$defs/${name}`)
}
