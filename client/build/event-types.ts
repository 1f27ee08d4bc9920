import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { components } from '../../bridge-https/description/openapi.ts'
import { eventSchemas } from '../../event/kind.ts'

/*
 * Makes client/events.ts, the types of events, from the schemas that the hub checks events with. The types are in the
 * repository, so that nothing has to be made before the first type check.
 */

const generator = fileURLToPath(import.meta.resolve('json-schema-to-typescript/dist/src/cli.js'))
const target = fileURLToPath(new URL('../events.ts', import.meta.url))

/** The source text of client/events.ts. */
export function eventTypes(): string {
  const definitions = eventDefinitions()
  const kinds = Object.keys(definitions).filter((name) => name.endsWith('Event'))
  const root = {
    title: 'HubEvent',
    description: 'An event of any kind, as publishers send it',
    anyOf: kinds.map((name) => ({ $ref: `#/$defs/${name}` })),
    $defs: definitions,
  }
  const style = ['--style.singleQuote', '--no-style.semi', '--style.printWidth=110']
  const options = [
    ...style,
    '--bannerComment',
    '/* Made by client/build/event-types.ts from event/schema.ts. */',
  ]
  return execFileSync(process.execPath, [generator, ...options], {
    input: JSON.stringify(root),
    encoding: 'utf8',
  })
}

/** The schemas of events by name, which refer to each other below `$defs`. */
export function eventDefinitions() {
  return components(eventSchemas, (name) => `#/$defs/${name}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(target, eventTypes())
