import { rename, writeFile } from 'node:fs/promises'
import { readFeed } from '../peers/ground.ts'
import { type Attack, createAssault } from './attack.ts'

/** Time from one feed to the next, milliseconds: the node reads it as often (`HUB_FEED_INTERVAL`). */
const everyMs = 1000

/**
 * A feed that changes all the time: every title, and one livestream of ten is another one than before. Each feed is good,
 * so the node takes it. Livestreams of other institutions than the attacker's stay.
 */
export const changingFeed: Attack = async ({ feedPath, livestreams }, force) => {
  const own = new Set(livestreams.map(({ id }) => id))
  const items = readFeed(feedPath).livestreams.map(({ institution, publisher, ...livestream }) => {
    return { ...livestream, publisher: { ...publisher, institution } }
  })
  // Its time begins here: reading the feed takes seconds on a busy machine.
  const assault = createAssault({ ...force, connections: 1 })
  return assault.everywhere(async () => {
    const began = performance.now()
    const round = ++assault.seen.units
    const changed = items.map((item) => ({
      ...item,
      id: own.has(item.id) ? idIn(round, item.id) : item.id,
      title: `${item.title}, ${round}`,
    }))
    const text = JSON.stringify({ items: changed })
    // The node must not read half a feed.
    await writeFile(`${feedPath}.next`, text)
    await rename(`${feedPath}.next`, feedPath)
    assault.seen.bytes += text.length
    await assault.pause(Math.max(0, began + everyMs - performance.now()))
  })
}

/** The id that a livestream has in one round only. */
function idIn(round: number, id: string): string {
  return `${id}-${round}`
}
