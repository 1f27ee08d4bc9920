import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Calls } from '../../store/nodes/calls.ts'
import type { OutputAttempt } from './senders/senders.ts'

/** A test lasts for one attempt, and may wait for the one before it, milliseconds. */
const longestMs = 45_000
const askEveryMs = 250
/** Results that a node keeps until the other one has asked for them. */
const kept = 20

/**
 * Carries tests of outputs out on the node that delivers, so that no two deliveries are under way at once. A question to
 * another node must be answered at once: the result is asked for until it is there.
 */
export function createTests(parts: {
  calls: Calls
  /** Undefined: this node does not deliver the lane. */
  run: (key: string, title: string) => Promise<OutputAttempt | undefined> | undefined
}) {
  const { calls, run } = parts
  const begun = new Map<string, { attempt?: OutputAttempt | 'elsewhere' }>()

  calls.serve('output-test', (asked) => {
    const { id, key, title } = asked as { id: string; key: string; title: string }
    const running = run(key, title)
    if (!running) return false
    const entry: { attempt?: OutputAttempt | 'elsewhere' } = {}
    begun.set(id, entry)
    const [oldest] = begun.keys()
    if (begun.size > kept && oldest !== undefined) begun.delete(oldest)
    void running.then(
      (attempt) => {
        entry.attempt = attempt ?? 'elsewhere'
      },
      () => {
        entry.attempt = 'elsewhere'
      },
    )
    return true
  })
  calls.serve('output-tested', (id) => begun.get(String(id))?.attempt)

  return {
    /** Undefined: no node delivers the lane at the moment. */
    async run(key: string, title: string): Promise<OutputAttempt | undefined> {
      const here = run(key, title)
      if (here) return here
      const id = randomUUID()
      const answers = await calls.askOthers('output-test', { id, key, title })
      const [node] = answers.find(([, isBegun]) => isBegun === true) ?? []
      const end = performance.now() + longestMs
      while (node !== undefined && performance.now() < end) {
        const attempt = await calls.ask(node, 'output-tested', id)
        if (attempt === 'elsewhere') return undefined
        if (attempt) return attempt as OutputAttempt
        await setTimeout(askEveryMs)
      }
      return undefined
    },
  }
}
