import { inTimeOr } from '../store/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import { reasonOf } from '../telemetry/reason.ts'
import { whyWrong } from './check-arguments.ts'
import { describeFailure, type Failed, refusal } from './errors.ts'
import type { NodeParts } from './node-parts.ts'
import type { ChangeRequest, Operation } from './operation.ts'
import { operationNames, operations } from './operations.ts'

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
  | { error: Failed | { code: 'command.unknown'; message: string } }

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
    return performedBy(() => command(args, who, isStillAllowed), log, { command: name, who })
  }
}

/** The outcome of `command`. */
export async function performedBy(
  command: () => Promise<unknown>,
  log: Pick<Log, 'error'>,
  about: { command: string; who: string },
): Promise<{ result: unknown } | { error: Failed }> {
  try {
    return { result: (await command()) ?? null }
  } catch (err) {
    return { error: describeFailure(err, log, about) }
  }
}

/** Longest wait for the changes of other nodes, milliseconds: `hubctl` answers within two seconds. */
const catchUpMs = 1_200

/** The commands of the table for one node. */
export function createCommands(node: NodeParts): Commands {
  return Object.fromEntries(
    operationNames.map((name) => [name, commandOf<NodeParts>(name, operations[name], node, () => node)]),
  )
}

/**
 * Checks the arguments and waits for the changes of other nodes. Then asks `isStillAllowed`: one of these changes may
 * end the rights of the person. A change gets its entry in the audit log.
 *
 * `asked`: what the command asks and changes.
 */
export function commandOf<Asked>(
  name: string,
  operation: Operation<Asked>,
  node: Pick<NodeParts, 'audit' | 'catchUp'>,
  asked: () => Asked,
  as: Pick<ChangeRequest, 'isOwner'> = {},
): Commands[string] {
  return async (args, who, isStillAllowed) => {
    const wrong = whyWrong(operation, args)
    if (wrong !== undefined) throw refusal(wrong)
    const problem = operation.isAboutThisNode ? undefined : await whyNotCaughtUp(node)
    if (problem !== undefined) {
      throw refusal(`the store does not answer: ${problem}. Nothing was done; hubctl status still answers`)
    }
    if (isStillAllowed && !(await isStillAllowed())) throw refusal(`${who} may no longer give commands`)
    const checked = args as never
    if (operation.effect === 'none') return operation.run(asked(), checked)
    return node.audit.change(who, name, async (note) => operation.run(asked(), checked, { who, note, ...as }))
  }
}

function whyNotCaughtUp({ catchUp }: Pick<NodeParts, 'catchUp'>): Promise<string | undefined> {
  const caughtUp = catchUp().then(() => undefined, reasonOf)
  return inTimeOr(caughtUp, catchUpMs, `no answer within ${catchUpMs} ms`)
}
