import pc from 'picocolors'
import stringWidth from 'string-width'
import type { Column, Path } from '../operations/in-hubctl.ts'
import { visible, visibleJson } from '../telemetry/visible.ts'
import { isTime, localTime } from './time/local-time.ts'

/** Formats tables and sentences for people. Colours are for terminals only. */
export type Printer = ReturnType<typeof createPrinter>

/** Makes a printer for this output. */
export function createPrinter(output: { isTTY?: boolean }) {
  // picocolors alone would also colour the output of a CI job.
  const colours = pc.createColors(output.isTTY === true && pc.isColorSupported)

  return {
    /**
     * A table. For an empty list: the caller's text `nothing`, which must be true even if a filter has hidden all
     * elements.
     */
    list<Row extends object>(
      rows: readonly Row[],
      columns: readonly Column<Path<Row>>[],
      nothing: string,
    ): string {
      if (rows.length === 0) return nothing
      const shown = columns.map((column) =>
        typeof column === 'string' ? ([headingOf(column), column] as const) : column,
      )
      return aligned([
        shown.map(([heading]) => colours.bold(heading)),
        ...rows.map((row) => shown.map(([, path]) => showAt(path, cellOf(row, path)))),
      ])
    },

    /** A table of paths and values, also of nested objects. The further lines of a text stand below its first one. */
    properties(value: unknown): string {
      return aligned(
        flatten(value).flatMap(([path, leaf]) =>
          linesOf(leaf).map((line, nth) => [
            nth === 0 ? colours.bold(visible(path)) : '',
            showAt(path, line),
          ]),
        ),
      )
    },

    /** One line of values, padded so that lines printed one by one are aligned. */
    line(values: readonly (readonly [value: unknown, width: number])[]): string {
      return values
        .map(([value, width]) => padded(show(value), width))
        .join('  ')
        .trimEnd()
    },

    /** A sentence about an answer: `{name}` stands for its field `name`. */
    sentence(text: string, answer: object): string {
      return text.replace(/\{(\w+)\}/g, (_, field: string) => show(cellOf(answer, field)))
    },

    /** Something that needs attention. */
    warning(text: string): string {
      return colours.yellow(`warning: ${visible(text)}`)
    },

    /** A question for a person, of several lines. */
    question(lines: readonly string[]): string {
      return lines.map(visible).join('\n')
    },

    /** Something that went wrong. */
    failure(text: string): string {
      return colours.red(`hubctl: ${visible(text)}`)
    },
  }
}

/** One JSON value, without characters that a terminal would act upon. */
export function toJson(value: unknown): string {
  return visibleJson(JSON.stringify(value ?? null, null, 2))
}

function cellOf(row: object, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, name) => Object(inner)[name], row)
}

/** The heading of a column: `DEAD LETTERS` for `deadLetters`, `CREATED` for `createdAt`. */
function headingOf(path: string): string {
  return path
    .replace(/(?<=.)At$/, '')
    .replace(/[.]|(?=[A-Z])/g, ' ')
    .toUpperCase()
}

/** Aligns the rows: two spaces between the columns. */
function aligned(rows: readonly (readonly string[])[]): string {
  const columns: number[] = []
  for (const row of rows) {
    for (const [nth, cell] of row.entries()) columns[nth] = Math.max(columns[nth] ?? 0, widthOf(cell))
  }
  const line = (row: readonly string[]) => row.map((cell, nth) => padded(cell, columns[nth] ?? 0)).join('  ')
  return rows.map((row) => line(row).trimEnd()).join('\n')
}

function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(columns - widthOf(text), 0))
}

/** How many columns a text takes. For ASCII, `stringWidth` would be slow. */
function widthOf(text: string): number {
  return /^[ -~]*$/.test(text) ? text.length : stringWidth(text)
}

function show(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-'
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(show).join(', ')
  return visible(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** Shows a value. Times are shown in the time zone of the operator. */
function showAt(path: string, value: unknown): string {
  return show(isTime(path) ? localTime(value) : value)
}

function linesOf(leaf: unknown): unknown[] {
  // Only the last line end goes: a blank or an invisible character at the end may be what is looked for.
  return typeof leaf === 'string' ? leaf.replace(/\r?\n$/, '').split(/\r?\n/) : [leaf]
}

function flatten(value: unknown, path = ''): [path: string, leaf: unknown][] {
  if (!isObject(value)) return [[path || 'result', value]]
  return Object.entries(value).flatMap(([name, inner]) =>
    flatten(inner, path === '' ? name : `${path}.${name}`),
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A number of bytes for people, in kB or MB. */
export function sizeText(bytes: unknown): string {
  const size = Number(bytes)
  return size < 1e6 ? `${(size / 1e3).toFixed(1)} kB` : `${(size / 1e6).toFixed(1)} MB`
}
