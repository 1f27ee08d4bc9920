import { NowPlayingElement } from './element.ts'

/* `/embed/v1.js`: the element <now-playing>, for pages of others (open.md §4, docs/embed.md). */

// A page may load the script of two hubs.
if (!customElements.get('now-playing')) customElements.define('now-playing', NowPlayingElement)
