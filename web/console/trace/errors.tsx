import type { EventError } from '../../../operations/events.ts'
import { withNames } from '../livestream-names.ts'
import { Table } from '../parts/table.tsx'

/** Why an event was not published, or not for all of its livestreams; or what is probably wrong with it. */
export function Errors({
  errors,
  of = 'Errors',
}: {
  errors: readonly (EventError & { remedy?: string | null })[]
  of?: 'Errors' | 'Warnings'
}) {
  if (errors.length === 0) return null
  return (
    <Table
      caption={`${of} of the event`}
      rows={errors}
      keyOf={({ path, errorCode, message }) => `${path} ${errorCode} ${message}`}
      empty=""
      columns={[
        { title: 'What is wrong', cell: ({ message }) => withNames(message) },
        ...(errors.some(({ remedy }) => remedy)
          ? [{ title: 'What mends it', cell: ({ remedy }: { remedy?: string | null }) => remedy }]
          : []),
        { title: 'Where', cell: ({ path }) => <code>{path}</code> },
        { title: 'Code', cell: ({ errorCode }) => <code>{errorCode}</code> },
      ]}
    />
  )
}
