import type { Command, Schema } from '../commands.ts'
import { capital } from '../words.ts'
import { type FormField, kindOf, labelOf, lineName, linesOf } from './arguments.ts'
import {
  Choice,
  Field,
  type FieldParts,
  InstitutionField,
  Lines,
  Moment,
  set,
  Tick,
  type Typed,
} from './form.tsx'

/** The fields of a form for the arguments of a command, made from their schemas. */
export function ArgumentFields(props: { command: Command; fields: readonly FormField[]; typed: Typed }) {
  const { command, fields, typed } = props
  return fields.map(([name, schema]) => (
    <ArgumentField key={name} command={command} name={name} schema={schema} typed={typed} />
  ))
}

function ArgumentField(props: { command: Command; name: string; schema: Schema; typed: Typed }) {
  const { command, name, schema, typed } = props
  const own = command.console?.fields?.[name]
  const kind = kindOf(schema)
  const label = labelOf(name, command.console?.fields)
  const hint = own?.hint ?? (own?.choices ? '' : hintOf(schema))
  const isRequired = command.args.required?.includes(name) ?? false
  const parts = { typed, name, label, isRequired, hint: capital(hint) }
  if (own?.choices && kind !== 'ticks') return <Choice {...parts} choices={Object.entries(own.choices)} />
  if (kind === 'choice') {
    const choices = (schema.enum ?? []).map((one) => [one, one] as const)
    return <Choice {...parts} choices={isRequired ? choices : [['', '–'], ...choices]} />
  }
  if (kind === 'switch') return <Tick {...parts} />
  if (kind === 'ticks')
    return <Ticks {...parts} values={schema.items?.enum ?? []} words={own?.choices ?? {}} />
  if (kind === 'moment') return <Moment {...parts} />
  if (kind === 'institution') return <InstitutionField {...parts} />
  if (kind === 'institutions') return <Institutions {...parts} />
  if (kind === 'lines') return <Lines {...parts} />
  return (
    <Field
      {...parts}
      {...(kind === 'number' && { type: 'number' })}
      placeholder={exampleOf(command, name)}
      {...(schema.maxLength !== undefined && { maxLength: schema.maxLength })}
    />
  )
}

/** One tick for each value that a list may have. */
function Ticks({
  typed,
  name,
  label,
  hint,
  values,
  words,
}: FieldParts & { values: readonly string[]; words: Readonly<Record<string, string>> }) {
  const ticked = linesOf(typed.value[name] ?? '')
  return (
    <fieldset class="field wide">
      <legend>{label}</legend>
      {hint && <small>{hint}</small>}
      {values.map((value) => (
        <label key={value} class="tick">
          <input
            type="checkbox"
            checked={ticked.includes(value)}
            onChange={({ currentTarget }) => {
              const others = ticked.filter((one) => one !== value)
              set(typed, name, (currentTarget.checked ? [...others, value] : others).join('\n'))
            }}
          />
          <span>
            {value}
            {words[value] && <small>{words[value]}</small>}
          </span>
        </label>
      ))}
    </fieldset>
  )
}

/** A field for each institution, and an empty one for the next. */
function Institutions({ name, label, hint, ...parts }: FieldParts) {
  const names = Array.from({ length: 100 }, (_, nth) => lineName(name, nth))
  const filled = names.findLastIndex((one) => (parts.typed.value[one] ?? '') !== '')
  return names
    .slice(0, filled + 2)
    .map((one, nth) => (
      <InstitutionField
        key={one}
        {...parts}
        name={one}
        label={nth === 0 ? label : `${label}, ${nth + 1}`}
        {...(nth === 0 && hint && { hint })}
      />
    ))
}

/** The description of an argument, which completes "<argument> must be …", as a hint. */
function hintOf(schema: Schema): string {
  const { description = '' } = schema
  return kindOf(schema) === 'lines'
    ? `${description.replace('a list of ', '')}, one a line`
    : description.replace('a list of ', '')
}

/** `username` of the example of the command: what such a text looks like. */
function exampleOf({ args }: Command, name: string): string {
  const [example] = args.examples ?? []
  const text: unknown = Object(example)[name]
  return typeof text === 'string' || typeof text === 'number' ? String(text) : ''
}
