import { maxDelayMs } from '../event/delivery-fields.ts'
import type { History } from '../journal/history/history.ts'
import type { Journal } from '../journal/journal.ts'

/** Of what comes within so many milliseconds, the last position counts for all. */
const apartMs = 100

/**
 * Returns a function that tells the last position which was accepted at least so many milliseconds ago. The times of
 * acceptance tell it, also after a start. Where the clock was set back they lie ahead, some for hours: what this node has
 * known for so long counts, whatever clocks say (deliveries.md, "When").
 */
export function createPositionBefore(
  {
    journal,
    history,
    clock,
  }: {
    journal: Pick<Journal, 'onEach'>
    history: Pick<History, 'positionAt'>
    clock: () => number
  },
  elapsed: () => number = () => performance.now(),
) {
  const known: { position: number; since: number; at: number }[] = []
  journal.onEach(({ position }) => {
    const at = elapsed()
    const last = known.at(-1)
    if (last && at - last.since < apartMs) return void Object.assign(last, { position, at })
    known.push({ position, since: at, at })
    while (known[1] && known[1].at <= at - maxDelayMs) known.shift()
  })

  return async (ms: number): Promise<number> => {
    const accepted = (await history.positionAt(clock() - ms)) - 1
    const before = elapsed() - ms
    return Math.max(accepted, known.findLast(({ at }) => at <= before)?.position ?? 0)
  }
}
