import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Commands, Usage } from './child.ts'

/** Runs the commands that the parent process names, and sends the results back. Adds the command `usage`. */
export function answer(commands: Commands): void {
  const all: Commands = { ...commands, usage }
  process.on('message', async ({ id, name, args }: { id: number; name: string; args: unknown }) => {
    const command = all[name] as ((args: unknown) => unknown) | undefined
    try {
      if (!command) throw new Error(`no command ${name}`)
      process.send?.({ id, result: await command(args) })
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? error.message : String(error) })
    }
  })
  // Ends together with the parent process: nothing else would end this process.
  process.on('disconnect', () => process.exit())
}

/** `collected`: collects garbage first, so that garbage does not count as memory. */
function usage({ collected }: { collected?: boolean }): Usage {
  if (collected) {
    setFlagsFromString('--expose-gc')
    runInNewContext('gc')()
  }
  const { user, system } = process.cpuUsage()
  return { cpuMs: (user + system) / 1000, bytes: process.memoryUsage.rss() }
}
