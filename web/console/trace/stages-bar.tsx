import type { Stages } from '../../../operations/events.ts'
import { budgetMs, ms } from '../words.ts'

/** Shows how long each stage took. `withBudget`: beside how long it may take, which operators answer for. */
export function StagesBar(props: { stages: Stages; isSmall?: boolean; withBudget?: boolean }) {
  const { stages, isSmall = false, withBudget = true } = props
  const { decided, stored, written } = stages
  const budget = withBudget ? budgetMs : written
  const whole = Math.max(budget, written, 1)
  const parts = [
    ['decided', decided],
    ['stored', stored - decided],
    ['written', written - stored],
  ] as const
  const words = `Decided after ${ms(decided)}, stored after ${ms(stored)}, written to the last connected subscriber after ${ms(written)}${withBudget ? `; the budget is ${budgetMs} ms` : ''}.`
  return (
    <div class={isSmall ? 'stages small' : 'stages'} role="img" aria-label={words} title={words}>
      <div class="stages-bar">
        {parts.map(([name, took]) => (
          <i key={name} class={name} style={{ width: `${Math.max((100 * took) / whole, 0.4)}%` }} />
        ))}
        {written > budget && <b style={{ left: `${(100 * budget) / whole}%` }} />}
      </div>
      {!isSmall && (
        <ul>
          <li class="decided">decided {ms(decided)}</li>
          <li class="stored">stored {ms(stored)}</li>
          <li class="written">written {ms(written)}</li>
          {withBudget && <li class="budget">budget {budgetMs} ms</li>}
        </ul>
      )}
    </div>
  )
}
