import { parseInstant } from '../event/format.ts'
import { createPercentiles } from '../telemetry/latency.ts'

export type Ledger = ReturnType<typeof createLedger>

/** The outcome that is expected of an event. */
export type Verdict = 'published' | 'blocked' | 'invalid'

interface Entry {
  what: string
  expected: Verdict
  sentAt: number
  outcome: string | undefined
  /** Deliveries still to come, as `subscriber on topic`. */
  awaited: Set<string>
}

/** Keeps account of published events: of the hub's reports on them, and of their arrivals. */
export function createLedger() {
  const open = new Map<string, Entry>()
  const refused = new Set<string>()
  const receipts = createPercentiles()
  const reports = createPercentiles()
  const counts = { published: 0, accepted: 0, blocked: 0, invalid: 0, awaited: 0, arrived: 0 }
  const problems: string[] = []
  let settle = () => {}

  return {
    counts,
    /** Milliseconds from the publish call to the receipt in a subscriber, and to the report of the hub. */
    latency: () => ({ receipt: receipts.summary(), report: reports.summary() }),

    /**
     * Publishes an event, and notes the outcome that the hub reports. `deliveries`: where the event must arrive, as
     * `subscriber on topic`.
     */
    async publish<Report extends { outcome: string }>(
      key: string,
      { what, expected, deliveries }: { what: string; expected: Verdict; deliveries: readonly string[] },
      send: () => Promise<Report>,
    ): Promise<Report> {
      counts.published++
      if (expected === 'published') counts.awaited += deliveries.length
      else refused.add(key)
      const awaited = new Set(expected === 'published' ? deliveries : [])
      const entry = { what, expected, outcome: undefined, awaited }
      open.set(key, { ...entry, sentAt: performance.now() })
      const report = await send()
      reported(key, report.outcome)
      return report
    },

    /** Returns the milliseconds since `publish`. Undefined: the delivery was not awaited, or came before. */
    arrived(key: string, delivery: string): number | undefined {
      if (refused.has(key)) problems.push(`arrived although it was to be refused: ${delivery}`)
      const entry = open.get(key)
      if (!entry?.awaited.delete(delivery)) return undefined
      const ms = performance.now() - entry.sentAt
      receipts.add(ms)
      counts.arrived++
      closeIfDone(key)
      return ms
    },

    /** Resolves when every event is reported and delivered, or after `timeoutMs`. */
    async settled(timeoutMs: number): Promise<void> {
      if (open.size === 0) return
      await new Promise<void>((resolve) => {
        settle = resolve
        setTimeout(resolve, timeoutMs).unref()
      })
    },

    /** Everything that went wrong or is missing, with one text for each problem. */
    problems(): string[] {
      return [...problems, ...[...open.values()].flatMap(describe)]
    },
  }

  function reported(key: string, outcome: string): void {
    const entry = open.get(key)
    if (!entry) return
    entry.outcome = outcome
    reports.add(performance.now() - entry.sentAt)
    if (outcome === 'published') counts.accepted++
    if (outcome === 'blocked' || outcome === 'invalid') counts[outcome]++
    if (outcome !== entry.expected) problems.push(`${entry.what}: ${outcome}, expected ${entry.expected}`)
    closeIfDone(key)
  }

  function closeIfDone(key: string): void {
    const entry = open.get(key)
    if (entry?.outcome === undefined || entry.awaited.size > 0) return
    open.delete(key)
    if (open.size === 0) settle()
  }
}

function describe({ what, outcome, awaited }: Entry): string[] {
  return [
    ...(outcome === undefined ? [`${what}: no report`] : []),
    ...[...awaited].map((delivery) => `${what}: not arrived at ${delivery}`),
  ]
}

/** The key of an event in the ledger. Broadcasters do not know the `id`: the hub sets it. */
export function keyOf(event: unknown, time: unknown, livestreamId: unknown): string {
  return `${event} ${typeof time === 'string' ? parseInstant(time) : time} ${livestreamId}`
}
