import type { ListedEvent } from '../../../operations/events.ts'
import { Badge, type Tone } from '../parts/shown.tsx'

const tones: Readonly<Record<string, Tone>> = {
  published: 'good',
  blocked: 'warn',
  invalid: 'warn',
  failed: 'bad',
}

/** The outcome of an event, in a word or two. */
export function Outcome({
  row,
}: {
  row: Pick<ListedEvent, 'outcome' | 'dryRun' | 'errors' | 'isRepetition'>
}) {
  const { outcome, dryRun, errors, isRepetition } = row
  const isPartly = outcome === 'published' && errors.length > 0
  const more = [
    ...(isPartly ? ['in part'] : []),
    ...(dryRun ? ['dry run'] : []),
    ...(isRepetition ? ['again'] : []),
  ]
  return (
    <Badge tone={isPartly ? 'warn' : dryRun ? 'plain' : (tones[outcome ?? ''] ?? 'plain')}>
      {[outcome ?? 'not known', ...more].join(', ')}
    </Badge>
  )
}
