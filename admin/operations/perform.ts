import type { Log } from '../../telemetry/log.ts'
import { isFailure, isRefusal } from '../refusal.ts'

/** What the node can be asked to do, by name. `who` is the person who asks, as the audit log names it. */
export type Commands = Record<string, (args: Record<string, unknown>, who: string) => Promise<unknown>>

/** What became of a command. */
export type Performed =
  | { result: unknown }
  /** The node will not do it, or could not: in words for the one who asked. */
  | { error: { code: 'command.unknown' | 'refused' | 'internal'; message: string } }

export type Perform = ReturnType<typeof createPerform>

/** Carries commands out, whichever door they came through. What goes wrong is in the log, and never told. */
export function createPerform({ commands, log }: { commands: Commands; log: Pick<Log, 'error'> }) {
  return async (name: string, args: Record<string, unknown>, who: string): Promise<Performed> => {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (command === undefined) return failed('command.unknown', `this node has no command "${name}"`)
    try {
      return { result: (await command(args, who)) ?? null }
    } catch (err) {
      if (isRefusal(err)) return failed('refused', err.message)
      log.error({ err, command: name, who }, 'an admin command failed')
      return failed('internal', isFailure(err) ? err.message : 'the node could not do it; its log says why')
    }
  }
}

function failed(code: 'command.unknown' | 'refused' | 'internal', message: string): Performed {
  return { error: { code, message } }
}
