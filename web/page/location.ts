import { batch, signal } from '@preact/signals'

/** Path of the page that is shown. */
export const currentPath = signal(location.pathname)
/** Query of that page's address, with the `?`. An empty text if the address has no query. */
export const query = signal(location.search)

addEventListener('popstate', shown)

/**
 * A handler for clicks that shows another page without loading it. It handles links to pages of the same script, and
 * leaves to the browser all other links and all clicks that open a new tab or window.
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
 * A text as a part of a path. Replaces lone surrogates: any publisher may send them, but a URL cannot contain them.
 * Puts `%00`, which no name has, before `.` and `..`: browsers take these for steps in the path, also as `%2E`.
 */
export function pathPart(text: string): string {
  const isStep = text === '.' || text === '..'
  return (isStep ? '%00' : '') + encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\uFFFD'))
}

/** The text of a part of a path. Returns the part itself if it cannot be decoded: nothing has such a name. */
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

function shown(): void {
  batch(() => {
    currentPath.value = location.pathname
    query.value = location.search
  })
}
