import { now } from '../page/clock.ts'
import { timeOf } from '../page/instant.ts'

/** The budget: the milliseconds that one event may take through the hub (service.md §8). */
export const budgetMs = 220

const dateTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const number = new Intl.NumberFormat('en-GB')

/** `31 Jan 2026, 18:02:00`. Returns `at` unchanged if it is no time, as in some refused events. */
export function dateAndTime(at: string): string {
  const time = timeOf(at)
  return Number.isNaN(time) ? at : dateTime.format(time)
}

/** `18:02:00` if the time is today. Otherwise the text also has the date. */
export function clockTime(at: string): string {
  const time = timeOf(at)
  if (Number.isNaN(time)) return at
  const isToday = new Date(time).toDateString() === new Date(now()).toDateString()
  return (isToday ? clock : dateTime).format(time)
}

/** Time from now: `12 s ago`, `in 3 days`. */
export function relative(at: string): string {
  const difference = timeOf(at) - now()
  if (Number.isNaN(difference)) return at
  const amount = durationOf(Math.abs(difference) / 1000)
  return difference > 0 ? `in ${amount}` : `${amount} ago`
}

/** `12 s`, `4 min`, `3 h`, `2 days` */
export function durationOf(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`
  return `${number.format(Math.round(seconds / 86_400))} days`
}

/** `12,345` */
export function count(value: number): string {
  return number.format(value)
}

/** Per second: `0.3`, `12`, `4,500`. */
export function rate(value: number): string {
  return number.format(value < 10 ? Math.round(value * 10) / 10 : Math.round(value))
}

/** `0.42 ms`, `12 ms` */
export function ms(value: number): string {
  return `${number.format(value < 10 ? Math.round(value * 100) / 100 : Math.round(value))} ms`
}

/** `12 MB` */
export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB']
  const nth = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(value, 1)) / 3))
  return `${number.format(Math.round(value / 1000 ** nth))} ${units[nth]}`
}

/** `1 message`, `2 messages` */
export function amount(value: number, noun: string): string {
  return `${number.format(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** The last part of an identifier: `75b657fb` of `urn:org:institution:75b657fb`. */
export function shortId(id: string): string {
  return id.replace(/^.*[:.](?=[^:.]*$)/, '')
}

/** A kind of event by its short name: `track.playing`. */
export function kindOf(event: string | null): string {
  return event?.replace(/^.*\.radio\./, '') ?? '–'
}

/** A text with a capital letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** What an event is called: its title or name, and who performs it. */
export function titleOf(event: {
  title: string | null
  name: string | null
  artist: string | null
  event: string | null
}): string {
  return [event.title ?? event.name ?? kindOf(event.event), event.artist].filter(Boolean).join(' – ')
}
