import type { ShownQueue } from '../../operations/queues.ts'

/** Whether a queue needs the attention of an operator. */
export function needsAttention({
  state,
  deadLetters,
  dropped,
}: Pick<ShownQueue, 'state' | 'deadLetters' | 'dropped'>): boolean {
  return (
    ['behind', 'retrying', 'disabled', 'no target', 'driver down'].includes(state) ||
    deadLetters > 0 ||
    dropped > 0
  )
}
