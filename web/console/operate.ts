import { signal } from '@preact/signals'
import type { OperationName, Result } from '../../operations/operations.ts'
import { problemOf } from '../page/ask.ts'
import { askAsUser } from '../page/session.ts'
import { commandNamed } from './placed.ts'

/** The result of a command, or why there is none, in the words of the hub. */
export type Operated<Result> = { result: Result } | { problem: string; retryAfter: number | undefined }

/** How long a person's command waits, milliseconds: a webhook or the feed may be slow. */
export const commandPatienceMs = 60_000

/** Whether the node answers; undefined: nothing was asked yet. */
export const isReached = signal<boolean | undefined>(undefined)

/** The last command that changed something here. What is shown is then asked again. */
export const lastChange = signal<{ name: OperationName } | undefined>(undefined)

/** Asks the node to carry out a command. Never rejects. */
export async function operate<Name extends OperationName>(
  name: Name,
  args: Record<string, unknown> = {},
  /** How long to wait for the answer, if not as long as usual. */
  patience: { patienceMs?: number } = {},
): Promise<Operated<Result<Name>>> {
  const answer = await askAsUser('POST', `/operate/${name}`, { body: args, ...patience })
  // A proxy answers 502, 503 or 504 when it does not reach the node.
  isReached.value = answer.status !== 0 && ![502, 503, 504].includes(answer.status)
  if (answer.status !== 200 || !('result' in answer.body))
    return { problem: problemOf(answer), retryAfter: answer.retryAfter }
  if (commandNamed(name)?.effect !== 'none') lastChange.value = { name }
  return { result: answer.body.result as Result<Name> }
}
