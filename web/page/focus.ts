import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'

/** Focuses the content of the page, and leaves the page scrolled as it is. */
export function focusContent(): void {
  document.getElementById('main')?.focus({ preventScroll: true })
}

/**
 * Gives the focus of a removed element to the nearest heading that stays. Otherwise Tab would begin at the top, and a
 * screen reader would say nothing.
 */
export function useFocusOnHeading(gone: RefObject<HTMLElement | null>): void {
  // A layout effect ends while the element is still in the page.
  useLayoutEffect(
    () => () => {
      const element = gone.current
      if (!element?.contains(document.activeElement)) return
      const [inPanel, inView] = ['.panel', '.view'].map((part) =>
        element.closest(part)?.querySelector('h1, h2'),
      )
      // Elements around this one may go away as well: wait.
      queueMicrotask(() => {
        const heading = [inPanel, inView].find((one) => one?.isConnected)
        if (!(heading instanceof HTMLElement)) return focusContent()
        heading.tabIndex = -1
        heading.focus({ preventScroll: true })
      })
    },
    [],
  )
}
