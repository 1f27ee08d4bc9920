import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { shareCertificates } from './certificates.ts'
import { compiledServer } from './compiled-server.ts'
import { shareSigningKey } from './signing-key.ts'
import { isEmbedded } from './start-hub.ts'

/**
 * Starts a node as a separate process, until the test ends. `server`: path of its program; `node`: of Node.js.
 * `command`: words in front of the command.
 */
export async function spawnHub(
  t: Test,
  home: string,
  env: Record<string, string> = {},
  {
    openFiles,
    server,
    node: runtime = process.execPath,
    killAfterMs,
    command = [],
  }: {
    openFiles?: number
    server?: string
    node?: string
    killAfterMs?: number
    command?: readonly string[]
  } = {},
) {
  const node = [...command, runtime, server ?? (await compiledServer())]
  await shareCertificates(join(home, 'certs'))
  if (isEmbedded(env)) await shareSigningKey(join(home, 'data'))
  // `exec` replaces the shell by the node, so `child` is the node itself.
  const [program = '', ...args] =
    openFiles === undefined ? node : ['sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$1"`, ...node]
  const child: ChildProcess = spawn(program, args, {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      HUB_DATA_DIR: join(home, 'data'),
      HUB_MQTT_PORT: '0',
      HUB_HTTPS_PORT: '0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr?.on('data', (chunk) => {
    errors += chunk
  })
  // Waits for "close", because "exit" may come before the last lines of the output.
  const exited = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  if (killAfterMs !== undefined) setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  if (!child.stdout) throw new Error('no output')
  const lines = createInterface({ input: child.stdout })
  const messages: string[] = []
  const entries: Record<string, unknown>[] = []
  const ready = await new Promise<{ mqttPort: number; httpsPort: number; adminSocket: string }>(
    (resolve, reject) => {
      lines.on('line', (line) => {
        const entry = JSON.parse(line)
        entries.push(entry)
        messages.push(entry.err ? `${entry.msg}: ${entry.err.message}` : entry.msg)
        if (entry.msg === 'hub ready') resolve(entry)
      })
      child.once('close', (code) => reject(new Error(`the hub ended with ${code}: ${errors}`)))
    },
  )

  return {
    mqttPort: ready.mqttPort,
    httpsPort: ready.httpsPort,
    adminSocket: ready.adminSocket,
    caPath: join(home, 'certs', 'ca.pem'),
    pid: child.pid ?? 0,
    /** The messages of the log so far, with the messages of errors. */
    messages,
    /** The lines of the log so far. */
    lines: entries,
    /** Resolves when the process has ended. */
    ended: exited,
    /** The text that the node has written to its standard error so far. */
    errors: () => errors,
    /** Sends the signal. Resolves with the exit code; null: a signal ended the process. */
    async stop(signal: 'SIGKILL' | 'SIGTERM' | 'SIGHUP'): Promise<number | null> {
      child.kill(signal)
      const [code] = await exited
      return code
    },
  }
}
