import { readAttributes } from './attributes.ts'
import { type Shown, watch } from './shared-stream.ts'
import { createView } from './view.ts'

/** `<now-playing livestream hub delay covers>`: shows what a livestream plays (open.md §4). */
export class NowPlayingElement extends HTMLElement {
  static readonly observedAttributes = ['livestream', 'hub', 'delay', 'covers', 'aria-live']

  readonly #view = createView(this.attachShadow({ mode: 'open' }))
  #asked = ''
  #shown: Shown | undefined
  #leave: (() => void) | undefined
  #isReading = false

  connectedCallback(): void {
    this.#readSoon()
  }

  disconnectedCallback(): void {
    this.#readSoon()
  }

  attributeChangedCallback(): void {
    this.#readSoon()
  }

  /** Scripts set attributes one by one, and remove an element to move it. */
  #readSoon(): void {
    if (this.#isReading) return
    this.#isReading = true
    queueMicrotask(() => {
      this.#isReading = false
      this.#read()
    })
  }

  #read(): void {
    this.#view.setLive(this.getAttribute('aria-live') ?? 'polite')
    const asked = this.isConnected ? readAttributes(this) : undefined
    const text = JSON.stringify(asked) ?? ''
    if (text !== this.#asked) {
      this.#leave?.()
      this.#asked = text
      this.#shown = undefined
      this.#leave = asked && watch(asked, (shown) => this.#draw(shown))
    }
    this.#draw(this.#shown)
  }

  #draw(shown: Shown | undefined): void {
    this.#shown = shown
    this.#view.draw(shown, this.hasAttribute('covers'))
  }
}
