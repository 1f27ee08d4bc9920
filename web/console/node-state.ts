import { batch, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Status } from '../../operations/node.ts'
import { operate } from './operate.ts'
import { repeat } from './poll.ts'

/** The last status of the node. `formerState`: the status before, for rates. */
export const nodeState = signal<Status | undefined>(undefined)
const formerState = signal<Status | undefined>(undefined)
/** The reason why the last request failed. Undefined: it did not. */
export const stateProblem = signal<string | undefined>(undefined)

/**
 * Time between two requests for the status, milliseconds. Each status costs the node a millisecond, and twenty consoles
 * may be open.
 */
const everyMs = 10_000
const againMs = 2_000

/** Asks the node for its status as long as the console of an operator is open and visible. */
export function useNodeState(isOperator: boolean): void {
  useEffect(
    () =>
      isOperator
        ? repeat(async () => {
            const answer = await operate('status')
            return () => {
              if ('problem' in answer) {
                stateProblem.value = answer.problem
                return answer.waitMs ?? againMs
              }
              batch(() => {
                formerState.value = nodeState.value
                nodeState.value = answer.result
                stateProblem.value = undefined
              })
              return everyMs
            }
          })
        : undefined,
    [isOperator],
  )
}

/** How fast a counter grew between the last two answers, per second; undefined: not known. */
export function rateOf(counter: string): number | undefined {
  const after = nodeState.value
  const before = formerState.value
  // Behind a load balancer, two answers in a row may come from different nodes.
  if (!after || !before || after.node !== before.node || after.uptime <= before.uptime) return undefined
  const grown = (after.counters[counter] ?? 0) - (before.counters[counter] ?? 0)
  return grown / (after.uptime - before.uptime)
}
