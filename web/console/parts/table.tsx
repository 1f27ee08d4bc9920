import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { searchText } from '../../page/search-text.ts'
import { count } from '../words.ts'

/** A column: its title and its cells. */
export interface Column<Row> {
  title: string
  cell: (row: Row) => ComponentChildren
  /** The cells are numbers, which are aligned. */
  isNumber?: boolean
  /** Its title is for screen readers only. */
  isUntitled?: boolean
}

/** Number of rows at first. Each click on the button adds as many. */
const rowsAtOnce = 100
/** A table with at most this many rows has no filter. */
export const worthFilter = 8

/** A table of any length. It shows some rows, and a filter finds the others. */
export function Table<Row>(props: {
  /** The name of the list, for screen readers. */
  caption: string
  columns: readonly Column<Row>[]
  rows: readonly Row[] | undefined
  keyOf: (row: Row) => string
  /** The text of a row for the filter. Undefined: no filter. */
  textOf?: (row: Row) => string
  /** The text in place of the table when there are no rows. */
  empty: string
  toneOf?: (row: Row) => string | undefined
  /** How many rows are in the page at first. */
  atOnce?: number
  /** Elements beside the filter. */
  tools?: ComponentChildren
}) {
  const { caption, columns, rows, keyOf, textOf, empty, toneOf } = props
  const sought = useSignal('')
  const { atOnce = rowsAtOnce } = props
  const limit = useSignal(atOnce)
  if (!rows)
    return (
      <p class="loading" aria-busy="true">
        Loading…
      </p>
    )
  const words = searchText(sought.value).split(/\s+/).filter(Boolean)
  const found =
    textOf && words.length > 0
      ? rows.filter((row) => {
          const text = searchText(textOf(row))
          return words.every((word) => text.includes(word))
        })
      : rows
  const hasFilter = textOf !== undefined && (rows.length > worthFilter || sought.value !== '')
  const counted =
    found.length === rows.length ? count(rows.length) : `${count(found.length)} of ${count(rows.length)}`
  return (
    <div class="listing">
      {(hasFilter || props.tools) && (
        <div class="bar">
          {hasFilter && (
            <input
              type="search"
              aria-label={`Filter: ${caption}`}
              placeholder="Filter"
              value={sought.value}
              onInput={({ currentTarget }) => {
                sought.value = currentTarget.value
                limit.value = atOnce
              }}
            />
          )}
          {props.tools}
          {hasFilter && <span class="muted count">{counted}</span>}
          {/* The number changes with each answer of the node. Screen readers tell it only to who filters. */}
          <span class="unseen" role="status">
            {sought.value === '' ? '' : `${counted} rows`}
          </span>
        </div>
      )}
      {found.length === 0 ? (
        <p class="empty">{rows.length === 0 ? empty : 'Nothing matches the filter.'}</p>
      ) : (
        <table>
          <caption class="unseen">{caption}</caption>
          <thead>
            <tr>
              {columns.map(({ title, isNumber, isUntitled }) => (
                <th key={title} scope="col" class={isNumber ? 'number' : ''}>
                  {isUntitled ? <span class="unseen">{title}</span> : title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, limit.value).map((row) => (
              <tr key={keyOf(row)} class={toneOf?.(row) ?? ''}>
                {columns.map(({ title, cell, isNumber, isUntitled }) => (
                  <td key={title} class={isNumber ? 'number' : ''} data-title={isUntitled ? '' : title}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {found.length > limit.value && (
        <button
          type="button"
          class="more"
          onClick={() => {
            limit.value += rowsAtOnce
          }}
        >
          Show more ({count(found.length - limit.value)} left)
        </button>
      )}
    </div>
  )
}
