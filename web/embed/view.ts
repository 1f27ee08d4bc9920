import { nameOfControl } from '../on-air/words.ts'
import style from './now-playing.css'
import type { Shown } from './shared-stream.ts'

const sheet = new CSSStyleSheet()
sheet.replaceSync(style)

/** What is seen of an element. Until the first title that is the content of the element. */
export function createView(root: ShadowRoot) {
  root.adoptedStyleSheets = [sheet]
  const fallback = document.createElement('slot')
  const [station, writeStation] = line('station')
  const [announcement, writeAnnouncement] = line('announcement')
  const [title, writeTitle] = line('title')
  const [artist, writeArtist] = line('artist')
  const [next, writeNext] = line('next')
  const current = box('current', announcement, title, artist)
  const card = box('card', box('text', station, current, next))
  let image: HTMLImageElement | undefined
  let cover: string | undefined
  // A screen reader reads title and artist together.
  current.setAttribute('aria-atomic', 'true')
  root.append(fallback, card)

  return {
    /** Whether screen readers read each new title. */
    setLive: (live: string): void => current.setAttribute('aria-live', live),

    draw(shown: Shown | undefined, hasCovers: boolean): void {
      const playing = shown?.playing
      fallback.hidden = playing !== undefined
      show(card, 'card', playing !== undefined)
      writeStation(shown?.title)
      writeAnnouncement(shown?.announcements.map(nameOfControl).join(' · '))
      writeTitle(playing?.title)
      writeArtist(playing?.artist)
      writeNext([shown?.next?.artist, shown?.next?.title].filter(Boolean).join(' – '))
      drawCover(hasCovers ? playing?.cover : undefined)
    },
  }

  function drawCover(url: string | undefined): void {
    if (url === cover) return
    cover = url
    image?.remove()
    image = url === undefined ? undefined : imageOf(url)
    if (image) card.prepend(image)
  }
}

function box(name: string, ...content: HTMLElement[]): HTMLElement {
  const element = document.createElement('div')
  element.append(...content)
  show(element, name, true)
  return element
}

/** A line of text, and what writes it. What publishers write is never markup. */
function line(name: string): [HTMLElement, write: (text?: string) => void] {
  const element = box(name)
  element.dir = 'auto'
  return [
    element,
    (text = '') => {
      show(element, name, text !== '')
      // A text that stays is not touched: a screen reader would read it again.
      if (element.textContent !== text) element.textContent = text
    },
  ]
}

/** What is hidden is no part: a style of the page for it would show it. */
function show(element: HTMLElement, name: string, isShown: boolean): void {
  element.hidden = !isShown
  element.part.toggle(name, isShown)
}

function imageOf(url: string): HTMLImageElement {
  const image = document.createElement('img')
  image.part.add('cover')
  image.alt = ''
  image.referrerPolicy = 'no-referrer'
  image.onerror = () => image.remove()
  image.src = url
  return image
}
