import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hubctlCommand } from '../root.ts'

export interface Run {
  stdin?: string
  env?: Record<string, string>
  /** Largest size of a file that `hubctl` may write, in blocks of 512 bytes. */
  fileBlocks?: number
}

const [program = '', ...entry] = hubctlCommand

/** Runs `hubctl` in its own process, without a terminal. */
export async function runHubctl(argv: readonly string[], { stdin = '', env = {}, fileBlocks }: Run = {}) {
  const command = [program, ...entry, ...argv]
  // The shell sets the limit. Then `exec` replaces the shell with hubctl.
  const [first = '', ...rest] =
    fileBlocks === undefined ? command : ['sh', '-c', `ulimit -f ${fileBlocks}; exec "$0" "$@"`, ...command]
  const child = spawn(first, rest, {
    env: { ...process.env, HUB_DATA_DIR: '', HUBCTL_URL: '', ...env },
  })
  child.stdin.on('error', () => undefined) // hubctl may end before it reads its input.
  child.stdin.end(stdin)
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output.stderr += text
  })
  const [code] = await once(child, 'close')
  return { code, ...output }
}
