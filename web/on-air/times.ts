const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** `18:02` */
export function clockTime(time: number): string {
  return clock.format(time)
}

/** `18:02`, or `30 Jan 2026, 18:02` if that is not the day of `now`. */
export function clockTimeOn(time: number, now: number): string {
  return dayOf(time) === dayOf(now) ? clockTime(time) : `${dayOf(time)}, ${clockTime(time)}`
}

/** `31 Jan 2026` */
export function dayOf(time: number): string {
  return day.format(time)
}

/** `3:34` */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  const two = (number: number) => String(number).padStart(2, '0')
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor(seconds / 60) % 60
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
}

/** Time from `now`: `just now`, `4 min ago`, `in 2 h`. */
export function relative(time: number, now: number): string {
  const minutes = Math.round(Math.abs(now - time) / 60_000)
  if (minutes === 0) return 'just now'
  const amount =
    minutes < 60
      ? `${minutes} min`
      : minutes < 48 * 60
        ? `${Math.round(minutes / 60)} h`
        : `${Math.round(minutes / 1440)} days`
  return time > now ? `in ${amount}` : `${amount} ago`
}
