import { playing } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import { residentMemory } from '../memory.ts'
import { startNode } from '../node.ts'

export const startingFigures = {
  ready: 'ready after, s',
  readyMore: 'later than on an empty store, s',
  readyMemory: 'memory then, MB',
  readyHighest: 'highest until then, MB',
  first: 'first event until PUBACK, ms',
  pushed: 'until its webhooks have it, ms',
}

/**
 * Starts a node, publishes one event, and returns figures for `startingFigures`. `arrival` gets the `playlistItemId`,
 * and must resolve when all webhooks have the event.
 */
export async function startOn(
  env: Record<string, string>,
  livestream: Livestream,
  arrival?: (playlistItemId: string) => Promise<void>,
) {
  const node = await startNode(env, { alone: true })
  try {
    const memory = await residentMemory(node.pid)
    const { id } = livestream.institution
    const publisher = await node.connect(id)
    const playlistItemId = `first of ${node.pid}`
    const arrived = arrival?.(playlistItemId)
    const began = performance.now()
    const event = JSON.stringify(playing(livestream, { playlistItemId }))
    await publisher.publishAsync(`inbox/${id}`, event, { qos: 1 })
    const first = performance.now() - began
    await arrived
    const pushed = performance.now() - began
    publisher.end(true)
    return {
      ready: node.readyMs / 1000,
      readyMemory: (memory?.now ?? NaN) / 1e6,
      readyHighest: (memory?.highest ?? NaN) / 1e6,
      first,
      ...(arrived && { pushed }),
    }
  } finally {
    await node.stop()
  }
}
