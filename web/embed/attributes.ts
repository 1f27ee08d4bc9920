import { readUrl } from '../../client/url.ts'
import { tell } from './tell.ts'

/** What an element asks for. */
export interface Asked {
  /** Id of the livestream. */
  livestream: string
  /** Address of the hub, without a slash at its end. */
  hub: string
  /** Seconds by which all is shown later. */
  delay: number
}

const longestDelay = 300

/** Reads the attributes of an element. Undefined: one is missing or wrong, and the console says which. */
export function readAttributes(element: Element): Asked | undefined {
  const livestream = element.getAttribute('livestream')?.trim()
  const hub = hubOf(element.getAttribute('hub') ?? '')
  const delay = delayOf(element.getAttribute('delay')?.trim() || '0')
  if (!livestream) tell('livestream: expected its id')
  if (hub === undefined) tell('hub: expected https://…')
  if (delay === undefined) tell(`delay: expected seconds, 0 to ${longestDelay}`)
  return livestream && hub !== undefined && delay !== undefined ? { livestream, hub, delay } : undefined
}

function hubOf(text: string): string | undefined {
  const url = readUrl(text)
  // A proxy may serve the hub below a path.
  return url?.protocol === 'https:' ? `https://${url.host}${url.pathname.replace(/\/+$/, '')}` : undefined
}

function delayOf(text: string): number | undefined {
  return /^\d{1,3}$/.test(text) && Number(text) <= longestDelay ? Number(text) : undefined
}
