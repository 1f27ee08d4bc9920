import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { call } from '../cli/connection.ts'

export type DemoNode = Awaited<ReturnType<typeof startNode>>

/** User name and password of a client. */
export interface Login {
  username: string
  password: string
}

/** What the node's process sends when the node is ready or cannot start. */
export type NodeMessage =
  | { mqttPort: number; httpsPort: number; adminSocket: string; caPath: string }
  | { problem: string }

const program = fileURLToPath(new URL('./node-process.ts', import.meta.url))
const stopTimeoutMs = 10_000

/** Starts a node on free ports, in a temporary directory. Throws if the node cannot start. */
export async function startNode() {
  const home = await mkdtemp(join(tmpdir(), 'hub-demo-'))
  const child = fork(program, [home], {
    execArgv: [`--import=${import.meta.resolve('tsx')}`],
    // The user's `HUB_` variables must not change the demonstration.
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HUB_'))),
    stdio: ['ignore', 2, 2, 'ipc'],
  })
  const exited = once(child, 'exit').then(([code]: unknown[]) => code)
  const ready = await Promise.race([
    once(child, 'message').then(([message]) => message as NodeMessage),
    exited.then((code): NodeMessage => ({ problem: `its process ended with ${code}` })),
  ])
  if ('problem' in ready) {
    await stop()
    throw new Error(`the node cannot start: ${ready.problem}`)
  }
  const { mqttPort, httpsPort, adminSocket, caPath } = ready

  return {
    mqttPort,
    httpsPort,
    caPath,
    /** Resolves when the node's process has ended, wanted or not. */
    exited,
    stop,
    publisher: (label: string, institution: string): Promise<Login> =>
      ask('credentials.add', { role: 'publisher', label, institutions: [institution] }),
    subscriber: (label: string, filter: string): Promise<Login> =>
      ask('credentials.add', { role: 'subscriber', label, filters: [filter] }),
    /** Adds an operator. Returns the link to choose a password. */
    operator: async (email: string): Promise<string> => {
      const institution = 'urn:org:institution:operators'
      const made = await ask<{ resetUrl: string }>('users.add', {
        email,
        institution,
        permissions: ['operate'],
      })
      return made.resetUrl
    },
  }

  async function ask<Result>(command: string, args: Record<string, unknown>): Promise<Result> {
    const answer = await call(adminSocket, command, args, 'demo')
    if ('error' in answer) throw new Error(answer.error.message)
    return answer.result as Result
  }

  async function stop(): Promise<void> {
    if (child.connected) child.disconnect()
    const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    await exited
    clearTimeout(timer)
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}
