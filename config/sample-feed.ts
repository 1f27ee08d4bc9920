import { fileURLToPath } from 'node:url'

/** Path of the livestream feed that comes with the hub (design.md §6). */
export const sampleFeedPath = fileURLToPath(new URL('./sample-feed.json', import.meta.url))

/** Whether a path leads to the sample feed of this release, or of another installed release. */
export function isSampleFeed(path: string): boolean {
  return path === sampleFeedPath || /[\\/]config[\\/]sample-feed\.json$/.test(path)
}
