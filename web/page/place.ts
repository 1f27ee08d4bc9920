import { signal } from '@preact/signals'

/** Path of the page that is shown. */
export const place = signal(location.pathname)

addEventListener('popstate', () => {
  place.value = location.pathname
})

/**
 * Shows another page without loading it. A handler for clicks: it takes the links to pages of the same script, and leaves
 * to the browser whatever is to open elsewhere.
 */
export function linksTo(isOurs: (path: string) => boolean) {
  return (event: MouseEvent): void => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (!link || !isPlain || link.target !== '' || link.hash !== '') return
    if (link.origin !== location.origin || !isOurs(link.pathname)) return
    event.preventDefault()
    go(link.pathname)
  }
}

/** Shows another page. */
export function go(path: string): void {
  if (path === location.pathname) return
  history.pushState(null, '', path)
  place.value = path
  scrollTo(0, 0)
}
