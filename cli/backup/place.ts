import { codeOf, reasonOf } from '../../telemetry/reason.ts'
import { type CommandOption, type Input, type LocalHow, usage } from '../command.ts'
import type { CallFailure } from '../connection.ts'

/**
 * Where to export or import. Usually: through the admin socket of a running node. `stopped`: no node runs. An export
 * then reads the store itself. An import puts the file into the data directory.
 */
export interface Place {
  socketPath: string
  stopped: boolean
  who: string
}

export const stoppedOption: CommandOption = {
  flags: '--stopped',
  summary:
    'no node runs: use the store of this environment (HUB_CONFIG, HUB_DATA_DIR, HUB_REDIS_URL as for a node)',
}

/**
 * Returns where to export or import. Refuses a URL (`usage` error): the network must not see keys and password hashes.
 */
export function atSocket({ url, socketPath, isSocketNamed, who }: LocalHow, input: Input): Place {
  if (url !== undefined) throw usage('this works on the machine of a node only, without --url and HUBCTL_URL')
  const stopped = input.flag('stopped')
  if (stopped && isSocketNamed) {
    throw usage(
      '--socket and --stopped cannot be given together: HUB_DATA_DIR names the directory of the store',
    )
  }
  return { socketPath, stopped, who }
}

/** Says that an export or import has failed, and why. */
export function failureOf(code: 'export' | 'import', error: unknown): { error: CallFailure } {
  const isBrokenOff = codeOf(error) === 'ECONNRESET'
  const reason = isBrokenOff ? 'the node broke off: its log says why' : reasonOf(error)
  return { error: { code, message: `nothing was ${code}ed: ${reason}` } }
}
