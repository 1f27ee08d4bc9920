import type { Stages } from '../../../operations/events.ts'
import { budgetMs, ms } from '../words.ts'

/** Shows how long each stage took. */
export function StagesBar({ stages, isSmall = false }: { stages: Stages; isSmall?: boolean }) {
  const { decided, stored, written } = stages
  const whole = Math.max(budgetMs, written)
  const parts = [
    ['decided', decided],
    ['stored', stored - decided],
    ['written', written - stored],
  ] as const
  const words = `Decided after ${ms(decided)}, stored after ${ms(stored)}, written to the last connected subscriber after ${ms(written)}; the budget is ${budgetMs} ms.`
  return (
    <div class={isSmall ? 'stages small' : 'stages'} role="img" aria-label={words} title={words}>
      <div class="stages-bar">
        {parts.map(([name, took]) => (
          <i key={name} class={name} style={{ width: `${Math.max((100 * took) / whole, 0.4)}%` }} />
        ))}
        {written > budgetMs && <b style={{ left: `${(100 * budgetMs) / whole}%` }} />}
      </div>
      {!isSmall && (
        <ul>
          <li class="decided">decided {ms(decided)}</li>
          <li class="stored">stored {ms(stored)}</li>
          <li class="written">written {ms(written)}</li>
          <li class="budget">budget {budgetMs} ms</li>
        </ul>
      )}
    </div>
  )
}
