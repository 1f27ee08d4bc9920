import { useSignal } from '@preact/signals'
import { isRecord } from '../../../client/kind.ts'
import type { Command } from '../commands.ts'
import { commandNamed, rowButtonsOf } from '../placed.ts'
import { useCommandAnswer } from '../poll.ts'
import { amount, count } from '../words.ts'
import { type AnswerRow, Cell, columnsOf, partOf, searchText } from './answer.tsx'
import { argumentsOf, type FormField, kindOf, labelOf } from './arguments.ts'
import { CommandButton } from './command.tsx'
import { set, type Typed } from './form.tsx'
import { Problem } from './shown.tsx'
import { SomeOrAll } from './some-or-all.tsx'
import { type Column, Table, worthFilter } from './table.tsx'
import { fits } from './template.ts'

/** The rows of the answer to a command: its columns, a button for each command on a row, and filters. */
export function CommandList({ command }: { command: Command }) {
  const { name, result, columns, console: place } = command
  const { title = name, ask, first, related, isNewestLast } = place ?? {}
  const everyMs = everyMsOf(command)
  const chosen: Typed = useSignal({})
  const isAll = useSignal(false)
  const filters = filtersOf(command)
  const { value, problem } = useCommandAnswer(
    name,
    { ...ask, ...argumentsOf(filters, chosen.value) },
    everyMs,
  )
  const others = useCommandAnswer(
    commandNamed(related?.list ?? name)?.name ?? name,
    related ? {} : null,
    everyMs,
  )
  const rows = rowsOf(value.value)
  const all = related && rows ? withRelated(rows, rowsOf(others.value.value) ?? [], related.by) : rows
  const some = first && all?.filter((row) => fits(row, first.where))
  const shown = isAll.value ? all : (some ?? all)
  const isChosen = Object.values(chosen.value).some((text) => text !== '')
  const buttons = rowButtonsOf(name)
  const keys = ['node', ...buttons.map(({ console }) => console?.by ?? '')]
  return (
    <>
      <Problem text={problem.value ?? others.problem.value} />
      <Table
        caption={title}
        rows={isNewestLast ? shown?.toReversed() : shown}
        keyOf={(row) => JSON.stringify(buttons.length > 0 ? keys.map((key) => row[key]) : row)}
        textOf={searchText}
        empty={isChosen ? 'None of these.' : command.empty}
        tools={
          <>
            {((all?.length ?? 0) > worthFilter || isChosen) &&
              filters.map((field) => (
                <Filter key={field[0]} command={command} field={field} chosen={chosen} />
              ))}
            {first && all && some && some.length < all.length && (
              <SomeOrAll isAll={isAll} name={first.name} some={some.length} all={all.length} />
            )}
          </>
        }
        columns={[
          ...columnsOf(result.items ?? {}, columns).map((column) =>
            related && column.fields.includes('related')
              ? { title: column.title, cell: (row: AnswerRow) => <Related of={row.related} {...related} /> }
              : column,
          ),
          ...actionsOf(buttons),
        ]}
      />
    </>
  )
}

/** How often the answer to a command is asked for again, milliseconds. */
export function everyMsOf({ console }: Command): number {
  return (console?.everySeconds ?? 5) * 1000
}

function actionsOf(buttons: readonly Command[]): Column<AnswerRow>[] {
  if (buttons.length === 0) return []
  return [
    {
      title: 'Actions',
      isUntitled: true,
      cell: (row) => (
        <span class="buttons">
          {buttons.map(({ name }) => (
            <CommandButton key={name} name={name} row={row} />
          ))}
        </span>
      ),
    },
  ]
}

/** The arguments of a list that have few values. */
function filtersOf({ args, console }: Command): readonly FormField[] {
  return Object.entries(args.properties ?? {}).filter(
    ([name, schema]) =>
      ['choice', 'switch'].includes(kindOf(schema)) && !Object.hasOwn(console?.first?.where ?? {}, name),
  )
}

function Filter({ command, field, chosen }: { command: Command; field: FormField; chosen: Typed }) {
  const [name, schema] = field
  const label = labelOf(name, command.console?.fields)
  return (
    <select
      aria-label={label}
      value={chosen.value[name] ?? ''}
      onChange={({ currentTarget }) => set(chosen, name, currentTarget.value)}
    >
      <option value="">{label}: all</option>
      {(schema.enum ?? ['yes', 'no']).map((value) => (
        <option key={value}>{value}</option>
      ))}
    </select>
  )
}

function rowsOf(answer: unknown): readonly AnswerRow[] | undefined {
  return Array.isArray(answer) ? answer.filter(isRecord) : undefined
}

/** The rows, each with those of another list that have the same value of the field `by`. */
function withRelated(
  rows: readonly AnswerRow[],
  others: readonly AnswerRow[],
  by: string,
): readonly AnswerRow[] {
  const found = new Map<unknown, AnswerRow[]>()
  for (const other of others) {
    const known = found.get(other[by])
    if (known) known.push(other)
    else found.set(other[by], [other])
  }
  return rows.map((row) => ({ ...row, related: found.get(row[by]) ?? [] }))
}

/** How many rows of another list belong to a row, and which. */
function Related(props: { of: unknown; list: string; by: string; noun: string }) {
  const rows = rowsOf(props.of) ?? []
  const { result, columns = [] } = commandNamed(props.list) ?? {}
  if (rows.length === 0) return <span class="muted">no</span>
  const fields = columns.flatMap((column) => partOf(column).fields).filter((field) => field !== props.by)
  return (
    <details class="inline">
      <summary>{amount(rows.length, props.noun)}</summary>
      <ul>
        {rows.slice(0, 20).map((row) => (
          <li key={JSON.stringify(row)}>
            {fields.slice(0, 3).map((field) => (
              <>
                <Cell key={field} of={row} schema={result?.items ?? {}} fields={[field]} />{' '}
              </>
            ))}
          </li>
        ))}
        {rows.length > 20 && <li class="muted">and {count(rows.length - 20)} more</li>}
      </ul>
    </details>
  )
}
