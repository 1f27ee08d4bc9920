import pino from 'pino'
import { createEventIds } from '../../event/format.ts'
import type { Message } from '../../event/message.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createPipeline } from '../../validator/pipeline.ts'
import { readFeed } from './ground.ts'

/**
 * Makes this project's validation for another broker, without a store. The returned function resolves with false if the
 * event was not published.
 */
export function createValidation(feedPath: string, publish: (message: Message) => Promise<void>) {
  const { feed } = readFeed(feedPath)
  const pipeline = createPipeline({
    topics: {
      caughtUp: async () => false,
      ids: () => [],
      stored: new Map(),
      has: () => false,
      countOf: () => 0,
      ownerOf: () => undefined,
      missing: () => () => ({ changes: [] }),
    },
    repetitions: (_fingerprint, newId) => ({
      id: newId(),
      isRepeated: false,
      isRepeatedWhole: false,
      markPublishedInPart() {},
      first: undefined,
      keepAsStored() {},
      once: () => [],
      marks: () => ({ changes: [] }),
    }),
    feed: { inUse: { feed } },
    former: { byId: new Map(), byExternalId: new Map(), likeExternalId: () => [] },
    work: { withWebhooks: new Set(), isForAll: false, pluginTargets: new Set(), plan: () => [] },
    fanout: {
      distribute: async (messages) => {
        await Promise.all(messages.map(publish))
      },
      announce: () => {},
    },
    payloadAt: async () => undefined,
    dialects: 'all',
    nextEventId: createEventIds(),
    clock: Date.now,
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
  })
  return async (topic: string, payload: Buffer): Promise<boolean> => {
    const institutionId = topic.split('/')[1] ?? ''
    const arrival = { at: Date.now(), started: performance.now(), clientId: 'bench' }
    const report = await pipeline.publish({ payload, institutionId, allowedClasses: [] }, arrival)
    return report.outcome === 'published'
  }
}
