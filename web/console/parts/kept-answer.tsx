import { type Signal, signal } from '@preact/signals'
import { isRecord } from '../../../client/kind.ts'
import { type Command, type CommandName, commands } from '../commands.ts'
import { Answer } from './answer.tsx'
import { Copyable, Problem, ShownOnce } from './shown.tsx'
import { sentences, valueAt } from './template.ts'

/** The last answer to each command whose answer is shown until somebody presses Done. */
const kept = new Map<CommandName, Signal<unknown>>(
  commands.flatMap(({ name, console }) => (console?.answer ? [[name, signal<unknown>(undefined)]] : [])),
)

/** Shows the answer until somebody presses Done, if the command has an answer that people read. */
export function keepAnswer({ name }: Command, result: unknown): void {
  const answer = kept.get(name)
  if (answer) answer.value = result
}

/** The last answer to a command. */
export function KeptAnswer({ command }: { command: Command }) {
  const last = kept.get(command.name)
  const result = last?.value
  const { answer } = command.console ?? {}
  if (!last || !answer || !isRecord(result)) return null
  const { title, secrets = {}, text, columns } = answer
  return (
    <ShownOnce
      key={JSON.stringify(result)}
      name={title}
      title={title}
      done={() => {
        last.value = undefined
      }}
    >
      {sentences(text, result).map((one) => (
        <p key={one}>{one}</p>
      ))}
      {Object.entries(secrets).map(([field, label]) => (
        <Copyable key={field} label={label} value={String(valueAt(result, field))} />
      ))}
      <Problem text={typeof result.problem === 'string' ? result.problem : undefined} />
      <Answer
        of={result}
        schema={command.result}
        title={title}
        parts={columns ?? (text || answer.secrets ? [] : undefined)}
      />
      {typeof result.warning === 'string' && <p class="notice">{result.warning}</p>}
    </ShownOnce>
  )
}
