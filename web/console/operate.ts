import { signal } from '@preact/signals'
import { problemOf } from '../page/ask.ts'
import { askAsUser } from '../page/session.ts'
import type { CommandName, CommandResult } from './commands.ts'
import { commandNamed } from './placed.ts'

/** The result of a command, or why there is none, in the words of the hub. */
export type Operated<Result> = { result: Result } | Failed

/** `waitMs`: how long to wait before the next request, milliseconds, if the hub says so. */
interface Failed {
  problem: string
  waitMs: number | undefined
}

/** How long a person's command waits, milliseconds: a webhook or the feed may be slow. */
export const commandPatienceMs = 60_000

/** Whether the node answers; undefined: nothing was asked yet. */
export const isReached = signal<boolean | undefined>(undefined)

/** The last command that changed something here. What is shown is then asked again. */
export const lastChange = signal<{ name: CommandName } | undefined>(undefined)

/** Asks the node to carry out a command. Never rejects. */
export async function operate<Name extends CommandName>(
  name: Name,
  args: Record<string, unknown> = {},
  /** How long to wait for the answer, if not as long as usual. */
  patience: { patienceMs?: number } = {},
): Promise<Operated<CommandResult<Name>>> {
  const command = commandNamed(name)
  const { method, path, body } = requestOf(name, command?.at, args)
  const answer = await askAsUser(method, path, { ...(body && { body }), ...patience })
  // A proxy answers 502, 503 or 504 when it does not reach the node.
  isReached.value = answer.status !== 0 && ![502, 503, 504].includes(answer.status)
  const result = command?.at === undefined ? answer.body.result : answer.json
  if (answer.status !== 200 || result === undefined)
    return { problem: problemOf(answer), waitMs: answer.retryAfter && answer.retryAfter * 1000 }
  if (command?.effect !== 'none') lastChange.value = { name }
  return { result: result as CommandResult<Name> }
}

/** The request for a command: of operators, or `at` a place of its own, with arguments in the path. */
function requestOf(name: CommandName, at: string | undefined, args: Readonly<Record<string, unknown>>) {
  if (at === undefined) return { method: 'POST', path: `/operate/${name}`, body: args }
  const [method = '', place = ''] = at.split(' ')
  const path = place.replace(/\{(\w+)\}/g, (_, argument: string) =>
    encodeURIComponent(String(args[argument])),
  )
  const others = Object.entries(args).filter(([argument]) => !place.includes(`{${argument}}`))
  if (method !== 'GET') return { method, path, body: Object.fromEntries(others) }
  const query = new URLSearchParams(
    others.map(([argument, value]): [string, string] => [argument, String(value)]),
  )
  return { method, path: others.length > 0 ? `${path}?${query}` : path }
}
