import type { ShownQueue } from '../../../operations/queues.ts'
import { Badge, type Tone } from './shown.tsx'

const tones: Readonly<Record<string, Tone>> = {
  idle: 'good',
  delivering: 'good',
  behind: 'bad',
  beginning: 'plain',
  retrying: 'bad',
  paused: 'warn',
  disabled: 'bad',
  closed: 'plain',
  'no target': 'warn',
  'driver down': 'bad',
}

export function QueueState({ state }: Pick<ShownQueue, 'state'>) {
  return <Badge tone={tones[state] ?? 'plain'}>{state}</Badge>
}

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
