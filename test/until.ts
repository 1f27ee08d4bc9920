import { setTimeout as delay } from 'node:timers/promises'
import { patienceMs } from './patience.ts'

type Condition = () => Promise<boolean> | boolean

/** Whether a condition comes to hold before `timeoutMs` are over. Looks at once, soon, and then every 20 ms. */
export async function comes(holds: Condition, timeoutMs: number): Promise<boolean> {
  const end = performance.now() + timeoutMs
  for (let ms = 1; !(await holds()); ms = Math.min(2 * ms, 20)) {
    if (performance.now() > end) return false
    await delay(ms)
  }
  return true
}

/** Resolves when a condition holds. Throws after `timeoutMs`. */
export async function until(holds: Condition, timeoutMs = patienceMs): Promise<void> {
  if (!(await comes(holds, timeoutMs))) throw new Error(`it does not hold after ${timeoutMs} ms: ${holds}`)
}
