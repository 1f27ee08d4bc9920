import type { Log } from '../telemetry/log.ts'
import { isFailure, isRefusal } from './refusal.ts'

/** The commands of the node, by name. `who`: the person who asks, for the audit log. */
export type Commands = Record<
  string,
  (args: Record<string, unknown>, who: string, isStillAllowed?: IsStillAllowed) => Promise<unknown>
>

/** Whether the person who asked may still give commands. */
type IsStillAllowed = () => Promise<boolean>

/** The outcome of a command. */
export type Performed =
  | { result: unknown }
  /** The node refused, or failed. The message is for the person who asked. */
  | { error: { code: 'command.unknown' | 'refused' | 'internal'; message: string } }

export type Perform = ReturnType<typeof createPerform>

/** Carries out commands. Only the log gets the cause of a fault. */
export function createPerform({ commands, log }: { commands: Commands; log: Pick<Log, 'error'> }) {
  return async (
    name: string,
    args: Record<string, unknown>,
    who: string,
    isStillAllowed?: IsStillAllowed,
  ): Promise<Performed> => {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (command === undefined)
      return { error: { code: 'command.unknown', message: `this node has no command "${name}"` } }
    try {
      return { result: (await command(args, who, isStillAllowed)) ?? null }
    } catch (err) {
      return { error: describeFailure(err, log, { command: name, who }) }
    }
  }
}

/** Says why a command failed, for the person who asked. The log has the rest. */
export function describeFailure(
  err: unknown,
  log: Pick<Log, 'error'>,
  about: { command: string; who: string },
): Extract<Performed, { error: unknown }>['error'] {
  if (isRefusal(err)) return { code: 'refused', message: err.message }
  log.error({ err, ...about }, 'an admin command failed')
  const message = isFailure(err) ? err.message : 'the node could not do it; its log says why'
  return { code: 'internal', message }
}
