import { parseInstant } from '../../event/format.ts'

/** The time in a text (docs/publishers.md, "Times"), milliseconds since the epoch. NaN: it is no time. */
export function timeOf(at: string): number {
  return parseInstant(at) ?? Number.NaN
}

/**
 * The instant that was typed into a `datetime-local` field. Returns other texts unchanged: the node refuses them.
 * `shown`: the instant that the field showed at first. If the field still shows it, it is returned with its seconds,
 * which the field cannot show. At the end of summer time the field shows two different instants alike.
 */
export function instantOf(typed: string, shown = ''): string {
  if (shown !== '' && momentOf(shown) === typed) return shown
  const time = Date.parse(typed)
  return Number.isNaN(time) ? typed : new Date(time).toISOString()
}

/** The text of a `datetime-local` field for an instant: `2026-01-31T18:02`. Empty: the text is no instant. */
export function momentOf(instant: string): string {
  const time = parseInstant(instant)
  if (time === undefined) return ''
  const offset = new Date(time).getTimezoneOffset() * 60_000
  return new Date(time - offset).toISOString().slice(0, 16)
}
