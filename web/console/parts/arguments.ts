import type { InConsole } from '../../../operations/in-console.ts'
import { instantOf } from '../../page/instant.ts'
import type { Command, Schema } from '../commands.ts'
import { fits, wordsOf } from './template.ts'

/** How a field of a form looks. */
type FieldKind =
  | 'text'
  | 'lines'
  | 'choice'
  | 'ticks'
  | 'switch'
  | 'number'
  | 'moment'
  | 'institution'
  | 'institutions'

/** The texts of a form, by the names of its fields. A list has one item a line; a switch that is on is `yes`. */
type Texts = Readonly<Record<string, string>>

/** An argument and its schema. */
export type FormField = readonly [name: string, schema: Schema]

export function kindOf(schema: Schema): FieldKind {
  if (schema.type === 'boolean') return 'switch'
  if (schema.type === 'integer' || schema.type === 'number') return 'number'
  if (schema.type === 'array') {
    if (schema.items?.enum) return 'ticks'
    return isInstitution(schema.items) ? 'institutions' : 'lines'
  }
  if (schema.enum) return 'choice'
  if (isInstitution(schema)) return 'institution'
  return schema.description?.startsWith('an instant such as') && !schema.anyOf ? 'moment' : 'text'
}

function isInstitution(schema: Schema | undefined): boolean {
  return schema?.pattern?.startsWith('^urn:org:institution:') ?? false
}

/** The fields of the form of a command: arguments that are not known, and that go with the others that are typed. */
export function fieldsOf(
  { args, console }: Command,
  known: Readonly<Record<string, unknown>>,
  texts: Texts,
): readonly FormField[] {
  return Object.entries(args.properties ?? {}).filter(
    ([name]) => !Object.hasOwn(known, name) && fits(texts, console?.fields?.[name]?.where),
  )
}

/** The texts that a form begins with: the values of the row, or those that are usual. */
export function textsAtFirst({ args, console }: Command, row: Readonly<Record<string, unknown>>): Texts {
  return Object.fromEntries(
    Object.entries(args.properties ?? {}).flatMap(([name, schema]) => {
      const { usual, choices } = console?.fields?.[name] ?? {}
      const first =
        Object.keys(choices ?? {})[0] ?? (args.required?.includes(name) ? schema.enum?.[0] : undefined)
      const text =
        typeof row[name] === 'string' ? row[name] : (usual ?? (schema.type === 'array' ? undefined : first))
      return text === undefined ? [] : [[name, text]]
    }),
  )
}

/** The arguments that were typed. Empty fields are left out. */
export function argumentsOf(fields: readonly FormField[], texts: Texts): Record<string, unknown> {
  return Object.fromEntries(
    fields.flatMap(([name, schema]) => {
      const text = textOf(name, schema, texts)
      return text === '' ? [] : [[name, parsed(text, schema)]]
    }),
  )
}

/** Why a form cannot be sent, where the browser does not see it: no tick in a list that has usual ones. */
export function whatIsMissing(
  { console }: Command,
  fields: readonly FormField[],
  texts: Texts,
): string | undefined {
  const missing = fields.find(
    ([name, schema]) =>
      kindOf(schema) === 'ticks' && console?.fields?.[name]?.usual && textOf(name, schema, texts) === '',
  )
  return missing && `Tick at least one: ${labelOf(missing[0], console?.fields)}.`
}

/** The label of a field. */
export function labelOf(name: string, hints: InConsole['fields']): string {
  return hints?.[name]?.label ?? wordsOf(name)
}

function textOf(name: string, schema: Schema, texts: Texts): string {
  const names =
    kindOf(schema) === 'institutions' ? Object.keys(texts).filter((one) => isLineOf(one, name)) : [name]
  return names
    .map((one) => texts[one] ?? '')
    .join('\n')
    .trim()
}

/** The name of the text of one line of a list whose lines have a field each. */
export function lineName(name: string, nth: number): string {
  return nth === 0 ? name : `${name}.${nth}`
}

function isLineOf(line: string, name: string): boolean {
  return line === name || line.startsWith(`${name}.`)
}

function parsed(text: string, schema: Schema): unknown {
  if (schema.type === 'boolean') return text === 'yes'
  if (schema.type === 'array') return linesOf(text)
  if (kindOf(schema) === 'moment') return instantOf(text)
  const isNumber = schema.type === 'number' || schema.type === 'integer'
  return isNumber || (schema.anyOf?.some(({ type }) => type === 'integer') && /^\d+$/.test(text))
    ? Number(text)
    : text
}

/** The lines of a text, without empty ones. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}
