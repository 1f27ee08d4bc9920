import t from 'tap'
import type { ShownColumn } from '../../../operations/in-console.ts'
import { type Command, commands, type Schema } from '../../../web/console/commands.ts'
import { argumentsOf, fieldsOf, textsAtFirst } from '../../../web/console/parts/arguments.ts'
import { commandNamed } from '../../../web/console/placed.ts'

/** The schema of what a list has rows of, or of the answer. */
const rowOf = ({ result }: Command) => result.items ?? result

t.test('what the rows say about the console is about fields and commands that exist', async (t) => {
  for (const { name, args, result, console: place } of commands) {
    if (!place) continue
    const list = place.of === undefined ? undefined : commandNamed(place.of)
    if (place.of !== undefined) t.ok(list, `${name}: ${place.of}`)
    if (place.related) t.ok(commandNamed(place.related.list), `${name}: ${place.related.list}`)
    for (const part of place.columns?.flatMap((column) => partOf(column)) ?? [])
      for (const field of fieldsIn(part))
        t.ok(hasField(result.items ?? result, field), `${name} answers ${field}`)
    for (const field of (place.answer?.columns ?? []).flatMap(partOf))
      t.ok(hasField(result, field), `${name} answers ${field}`)
    for (const field of Object.keys(place.answer?.secrets ?? {}))
      t.ok(hasField(result, field), `${name}: ${field}`)
    for (const field of (place.answer?.text ?? []).flatMap(fieldsIn))
      t.ok(hasField(result, field), `${name}: ${field}`)
    for (const field of [...Object.keys(place.copy ?? {}), ...(place.heading ? [place.heading] : [])])
      t.ok(hasField(result, field), `${name} answers ${field}`)
    for (const field of Object.keys(place.fields ?? {}))
      t.ok(args.properties?.[field], `${name} takes ${field}`)
    if (place.by !== undefined) t.ok(args.properties?.[place.by], `${name} takes ${place.by}`)
    for (const [argument, field] of Object.entries(place.given ?? {}))
      t.ok(args.properties?.[argument] && list && hasField(rowOf(list), field), `${name}: ${argument}`)
    const aboutRow = [...(place.loss ?? []), ...(place.notice ?? [])].flatMap(placesIn)
    for (const field of [...aboutRow, ...Object.keys(place.where ?? {})])
      if (list) t.ok(hasField(rowOf(list), field), `${name}: rows of ${list.name} have ${field}`)
  }
})

t.test('a form asks for the arguments of the example, and sends what was typed', async (t) => {
  for (const command of commands) {
    const [example] = command.args.examples ?? []
    // Where browsers get one answer, the form does not ask how many.
    const asked = Object.entries(Object(example)).filter(([field]) => command.args.properties?.[field])
    const texts = Object.fromEntries(asked.map(([field, value]) => [field, typedAs(value)]))
    t.same(argumentsOf(fieldsOf(command, {}, texts), texts), Object.fromEntries(asked), command.name)
  }
})

t.test('a form begins with what is usual, and with the values of its row', async (t) => {
  const firstOf = (name: string, row = {}) => {
    const command = commandNamed(name)
    return command && textsAtFirst(command, row)
  }
  t.same(firstOf('users.add'), { permissions: 'publish\nsubscribe' })
  t.same(firstOf('credentials.rotate', { username: 'pub-1' }), { username: 'pub-1', revokeAfter: '86400' })
  t.match(firstOf('lifecycle.announce', { track: 'push', sunset: '2027-12-31', link: null }), {
    sunset: '2027-12-31',
  })
})

function typedAs(value: unknown): string {
  if (Array.isArray(value)) return value.join('\n')
  return value === true ? 'yes' : String(value)
}

/** The fields and sentences of a column. */
function partOf(column: ShownColumn): readonly string[] {
  return typeof column === 'string' ? [column] : column.slice(1)
}

/** The fields of a part of a column: a sentence, or a field. */
function fieldsIn(part: string): string[] {
  return part.includes('{') ? placesIn(part) : [part]
}

/** The fields that a sentence names. */
function placesIn(sentence: string): string[] {
  return [...sentence.matchAll(/\{([\w.]+)/g)].map(([, field = '']) => field)
}

function hasField(schema: Schema, path: string): boolean {
  if (path === 'related') return true
  const [name = '', ...rest] = path.split('.')
  const known = [schema, ...(schema.anyOf ?? [])].find(({ properties }) => properties?.[name])
  const inner = known?.properties?.[name]
  return inner !== undefined && (rest.length === 0 || hasField(inner, rest.join('.')))
}
