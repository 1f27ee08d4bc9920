import { type ComponentChildren, Fragment } from 'preact'
import { isRecord } from '../../../client/kind.ts'
import type { ShownColumn } from '../../../operations/in-console.ts'
import type { Schema } from '../commands.ts'
import { withNames } from '../livestream-names.ts'
import { Facts, None } from './shown.tsx'
import { Table } from './table.tsx'
import { isNothing, sentences, valueAt, wordsOf } from './template.ts'
import { Value } from './value.tsx'

export type AnswerRow = Readonly<Record<string, unknown>>

/** An answer to a command, by the schema of the command. `parts`: what is shown of it; otherwise everything. */
export function Answer(props: {
  of: unknown
  schema: Schema
  title: string
  parts?: readonly ShownColumn[] | undefined
  /** How many rows of a table are shown at first. */
  atOnce?: number
}) {
  const { of: value, title, atOnce = 100 } = props
  const schema = withoutNull(props.schema)
  if (Array.isArray(value) && schema.items) {
    const item = withoutNull(schema.items)
    if (!item.properties) return <Value of={value} field={title} schema={schema} isWhole />
    return (
      <Rows of={value.filter(isRecord)} schema={item} title={title} parts={props.parts} atOnce={atOnce} />
    )
  }
  if (!isRecord(value)) return <Value of={value} field={title} schema={schema} />
  if (!schema.properties) return <Entries of={value} schema={schema} title={title} atOnce={atOnce} />
  const parts = (props.parts ?? partsOf(schema, value)).map((column) => {
    const { title: name, fields } = partOf(column)
    const [first = ''] = fields
    return { name, fields, first, inner: valueAt(value, first), innerSchema: schemaAt(schema, first) }
  })
  return (
    <>
      <Facts
        of={parts
          .filter(({ inner, innerSchema }) => !isTable(inner, innerSchema))
          .map(({ name, fields, first, inner, innerSchema }) => [
            name,
            isNothing(inner) ? (
              isList(innerSchema) && !first.includes('.') && 'none'
            ) : (
              <Cell key={name} of={value} schema={schema} fields={fields} isWhole />
            ),
          ])}
      />
      {parts
        .filter(({ inner, innerSchema }) => isTable(inner, innerSchema))
        .map(({ name, inner, innerSchema }) => (
          <div key={name} class="part">
            <h3>{name}</h3>
            <Answer of={inner} schema={innerSchema} title={name} atOnce={10} />
          </div>
        ))}
    </>
  )
}

/** The rows of a list inside of an answer. */
function Rows(props: {
  of: readonly AnswerRow[]
  schema: Schema
  title: string
  parts: readonly ShownColumn[] | undefined
  atOnce: number
}) {
  const { of: rows, schema, title, atOnce } = props
  return (
    <Table
      caption={title}
      rows={rows}
      keyOf={(row) => JSON.stringify(row)}
      textOf={searchText}
      empty="None."
      atOnce={atOnce}
      columns={columnsOf(schema, props.parts)}
    />
  )
}

/** Names with their values, where the names are not known before. */
function Entries(props: { of: AnswerRow; schema: Schema; title: string; atOnce: number }) {
  const { of: record, schema, title, atOnce } = props
  const [value = {}] = Object.values(schema.patternProperties ?? {})
  return (
    <Table
      caption={title}
      rows={Object.entries(record)}
      keyOf={([name]) => name}
      textOf={([name, inner]) => `${name} ${JSON.stringify(inner)}`}
      empty="None."
      atOnce={atOnce}
      columns={[
        { title: 'Name', cell: ([name]) => <span class="id">{name}</span> },
        {
          title: 'Value',
          isNumber: isNumber(value),
          cell: ([name, inner]) => <Value of={inner} field={name} schema={value} />,
        },
      ]}
    />
  )
}

/** The columns of a table of such rows. */
export function columnsOf(schema: Schema, parts: readonly ShownColumn[] = partsOf(schema)) {
  return parts.map((column) => {
    const { title, fields } = partOf(column)
    return {
      title,
      fields,
      isNumber: fields.length === 1 && isNumber(schemaAt(schema, fields[0] ?? '')),
      cell: (row: AnswerRow) => <Cell of={row} schema={schema} fields={fields} />,
    }
  })
}

/** The title of a column, its fields, and the sentences below them. */
export function partOf(column: ShownColumn): { title: string; fields: readonly string[] } {
  if (typeof column === 'string') return { title: wordsOf(column), fields: [column] }
  const [title, ...fields] = column
  return { title, fields }
}

/** The fields of a cell that have a value, and below them the sentences that have something to say. */
export function Cell(props: {
  of: unknown
  schema: Schema
  fields: readonly string[]
  isWhole?: boolean
}): ComponentChildren {
  const { of: row, schema, fields, isWhole = false } = props
  const given = fields.filter((field) => !field.includes('{') && !isNothing(valueAt(row, field)))
  return (
    <>
      {given.length === 0 && <None />}
      {given.map((field, nth) => (
        <Fragment key={field}>
          {nth > 0 && ' · '}
          <Value
            of={valueAt(row, field)}
            field={field.replace(/^.*\./, '')}
            schema={schemaAt(schema, field)}
            isWhole={isWhole}
          />
        </Fragment>
      ))}
      {sentences(
        fields.filter((field) => field.includes('{')),
        row,
      ).map((below) => (
        <small key={below} class="below">
          {below}
        </small>
      ))}
    </>
  )
}

/** The text of a row that the filter of a table looks into. */
export function searchText(row: AnswerRow): string {
  const text = JSON.stringify(row)
  return `${text} ${withNames(text)}`
}

/** All fields, with those of objects inside. `of`: the name of the object; its `count` goes by that name. */
function partsOf({ properties = {} }: Schema, value?: unknown, prefix = '', of = ''): ShownColumn[] {
  return Object.entries(properties).flatMap(([name, inner]): ShownColumn[] => {
    const path = prefix + name
    const schema = withoutNull(inner)
    if (schema.properties && isRecord(valueAt(value, path)))
      return partsOf(schema, value, `${path}.`, wordsOf(name))
    if (of === '') return [path]
    return [[name === 'count' ? of : `${of}: ${wordsOf(name).toLowerCase()}`, path]]
  })
}

/** Whether a part is a table of its own. An empty one is a line that says so. */
function isTable(value: unknown, schema: Schema): boolean {
  if (Array.isArray(value)) return isList(schema) && value.length > 0
  return isRecord(value)
}

function isList({ items }: Schema): boolean {
  return items !== undefined && withoutNull(items).properties !== undefined
}

function schemaAt(schema: Schema, path: string): Schema {
  return path
    .split('.')
    .reduce((inner, name) => withoutNull(withoutNull(inner).properties?.[name] ?? {}), schema)
}

/** The schema of a value that may also be null. */
function withoutNull(schema: Schema): Schema {
  const [only, ...others] = schema.anyOf?.filter(({ type }) => type !== 'null') ?? []
  return only && others.length === 0
    ? { ...only, ...(schema.description && { description: schema.description }) }
    : schema
}

function isNumber({ type, description = '' }: Schema): boolean {
  return (type === 'integer' || type === 'number') && !description.endsWith('since the epoch')
}
