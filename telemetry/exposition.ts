import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type { Registry } from 'prom-client'

/** Longest work on an exposition in one turn of the event loop, milliseconds. One metric is not divided. */
const turnMs = 1
/** An exposition is followed by a pause of so many times the time that it took, and at most `maxPauseMs`. */
const pauseFactor = 19
/** Milliseconds. A metric that waits for a slow store must not delay the next exposition for long. */
const maxPauseMs = 1_000

/**
 * Makes the text of all metrics, in the format of Prometheus. Anybody may ask as often as he likes: all who ask
 * meanwhile share the next exposition, and expositions take a twentieth of the time at most. Each shows values that are
 * newer than the question.
 */
export function createExposition(registries: () => Promise<readonly Registry[]>): () => Promise<Buffer> {
  /** The exposition that has not begun. */
  let next: Promise<Buffer> | undefined
  /** Resolves when it may begin. */
  let before: Promise<unknown> = Promise.resolve()

  return () => {
    next ??= begin()
    return next
  }

  async function begin(): Promise<Buffer> {
    await before
    next = undefined
    const made = registries().then(make)
    before = made.then(
      ({ tookMs }) => pause(Math.min(tookMs * pauseFactor, maxPauseMs), undefined, { ref: false }),
      () => undefined,
    )
    return (await made).text
  }
}

async function make(registries: readonly Registry[]): Promise<{ text: Buffer; tookMs: number }> {
  const parts: string[] = []
  let tookMs = 0
  let turnBegan = performance.now()
  for (const registry of registries) {
    for (const { name } of registry.getMetricsAsArray()) {
      parts.push(await registry.getSingleMetricAsString(name))
      const worked = performance.now() - turnBegan
      if (worked < turnMs) continue
      tookMs += worked
      await nextTurn()
      turnBegan = performance.now()
    }
  }
  tookMs += performance.now() - turnBegan
  return { text: Buffer.from(`${parts.join('\n\n')}\n`), tookMs }
}
