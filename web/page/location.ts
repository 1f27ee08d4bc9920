import { batch, signal } from '@preact/signals'

/** Path of the page that is shown. */
export const currentPath = signal(location.pathname)
/** Query of the shown page, with the `?`. Empty: no query. */
export const query = signal(location.search)

addEventListener('popstate', shown)

/**
 * A click handler that shows pages of the same script without loading them. The browser handles all other links, and
 * clicks for a new tab or window.
 */
export function linksTo(isOurs: (path: string) => boolean) {
  return (event: MouseEvent): void => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (!link || !isPlain || link.target !== '' || link.hash !== '') return
    if (link.origin !== location.origin || !isOurs(link.pathname)) return
    event.preventDefault()
    go(link.pathname + link.search)
  }
}

/**
 * Makes a text a part of a path. Replaces lone surrogates: any publisher may send them, but no URL can contain them.
 * Puts `%00` before `.` and `..`. Browsers take these two for steps, even as `%2E`. No name has `%00`, so `textOf` can
 * remove it again.
 */
export function pathPart(text: string): string {
  const isStep = text === '.' || text === '..'
  return (isStep ? '%00' : '') + encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\uFFFD'))
}

/** The text of a part of a path, or the part itself if it cannot be decoded. */
export function textOf(part: string): string {
  try {
    return decodeURIComponent(part).replace(/^\0/, '')
  } catch {
    return part
  }
}

/** Shows another page, or the same with another query. */
export function go(address: string): void {
  const former = location.pathname
  if (address === former + location.search) return
  history.pushState(null, '', address)
  shown()
  if (location.pathname !== former) scrollTo(0, 0)
}

/** Changes the address of the shown page, without a new place in the history of the browser. */
export function replaceAddress(address: string): void {
  history.replaceState(null, '', address)
  shown()
}

function shown(): void {
  batch(() => {
    currentPath.value = location.pathname
    query.value = location.search
  })
}
