import { readArguments } from '../../cli/typed/arguments.ts'
import { createProgram } from '../../cli/typed/program.ts'

/** What `hubctl` asks a node for a typed command. Rejects with the error of wrong usage. */
export async function sent(argv: readonly string[]) {
  let asked: { operation: string; args: object } | undefined
  const program = createProgram(async (command, input) => {
    if ('run' in command) throw new Error(`hubctl ${command.words} asks no node`)
    asked = { operation: command.operation, args: await readArguments(command, input) }
  })
  await program.parseAsync(argv, { from: 'user' })
  return asked
}
