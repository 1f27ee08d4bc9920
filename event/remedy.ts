import { errorTable, schemaErrorTable } from './error.ts'
import { warningTable } from './warnings.ts'

const rows: ReadonlyMap<string, { remedy: string }> = new Map<string, { remedy: string }>([
  ...Object.entries(errorTable),
  ...Object.entries(schemaErrorTable).map(
    ([keyword, row]) => [`${keyword}.openapi.validation`, row] as const,
  ),
  ...Object.entries(warningTable),
])

/** What a publisher does about an error or a warning, in plain text. Null: there is nothing to do. */
export function remedyOf(errorCode: string): string | null {
  const { remedy } = rows.get(errorCode) ?? {}
  return remedy === undefined ? null : plain(remedy)
}

/** Markdown without links and marks. */
function plain(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')
}
