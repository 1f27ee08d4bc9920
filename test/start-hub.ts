import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pino from 'pino'
import type { Test } from 'tap'
import type { Passwords } from '../bridge-https/users/passwords.ts'
import { call } from '../cli/connection.ts'
import { quickPasswords } from './bridge-https/users/quick-passwords.ts'
import { shareCertificates } from './certificates.ts'
import { patienceMs } from './patience.ts'
import { whyUnlike } from './result-shape.ts'
import { shareSigningKey } from './signing-key.ts'

export type TestHub = Awaited<ReturnType<typeof startTestHub>>

export interface Issued {
  username: string
  password: string
}

/** Makes a directory for the test, and removes it when the test ends. */
export async function temporaryDirectory(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'hub-test-'))
  t.teardown(() => rm(directory, { recursive: true, force: true, maxRetries: 3 }))
  return directory
}

/**
 * Starts a node in the process of the test, on free ports, until the test ends. `env`: HUB_ variables. `directory`: the
 * home of an earlier node, whose data the node continues.
 */
export async function startTestHub(
  t: Test,
  env: Record<string, string> = {},
  directory?: string,
  passwords: Passwords = quickPasswords(),
) {
  // Loading a node takes a second, and many tests that import this file need none.
  const [{ startHub }, { loadConfig }] = await Promise.all([
    import('../hub.ts'),
    import('../config/config.ts'),
  ])
  const home = directory ?? (await temporaryDirectory(t))
  const dataDir = join(home, 'data')
  const variables = { HUB_DATA_DIR: dataDir, HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0', ...env }
  const loaded = loadConfig(variables, home)
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  const certsDir = join(home, 'certs')
  await shareCertificates(certsDir)
  if (isEmbedded(env)) await shareSigningKey(dataDir)
  const hub = await startHub(loaded.config, log, { certsDir, passwords })
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= hub.close()
    return closing
  }
  t.teardown(close)

  /** Runs one `hubctl` command. Throws if the node refuses it. */
  function ask<Result>(command: string, args: Record<string, unknown> = {}): Promise<Result> {
    return askNode(hub.adminSocket, command, args)
  }

  return {
    home,
    mqttPort: hub.mqttPort,
    httpsPort: hub.httpsPort,
    adminSocket: hub.adminSocket,
    caPath: hub.caPath ?? '',
    firstOperatorToken: hub.firstOperatorToken,
    /** Lines of the log so far. */
    lines,
    ask,
    /** Calls `holds` every 20 ms until it returns true. */
    async until(holds: () => Promise<boolean>): Promise<void> {
      while (!(await holds())) await setTimeout(20)
    },
    close,
    publisher: (institutions: string[], classes: string[] = []): Promise<Issued> =>
      ask('credentials.add', { role: 'publisher', label: 'test', institutions, classes }),
    subscriber: (...filters: string[]): Promise<Issued> =>
      ask('credentials.add', { role: 'subscriber', label: 'test', filters }),
    reader: (...filters: string[]): Promise<Issued> =>
      ask('credentials.add', { role: 'reader', label: 'test', filters }),
  }
}

/**
 * Runs one `hubctl` command. Throws if the node refuses it. A node whose store is slow for a moment refuses, and says
 * that nothing was done. The command is then repeated, for at most `timeoutMs`.
 */
export async function askNode<Result>(
  socketPath: string,
  command: string,
  args: Record<string, unknown>,
  timeoutMs = patienceMs,
): Promise<Result> {
  const end = performance.now() + timeoutMs
  for (;;) {
    const answer = await call(socketPath, command, args, 'tester')
    if ('result' in answer) {
      const unlike = whyUnlike(command, answer.result)
      if (unlike !== undefined)
        throw new Error(`the answer of ${command} is not as its schema says: ${unlike}`)
      return answer.result as Result
    }
    const { message } = answer.error
    const isUntouched =
      message.startsWith('the store does not answer: ') && message.includes('. Nothing was done')
    if (!isUntouched || performance.now() > end) throw new Error(message)
    await setTimeout(20)
  }
}

/** Makes a credential on a node that `spawnHub` has started. */
export function issue({ adminSocket }: { adminSocket: string }, request: object): Promise<Issued> {
  return askNode(adminSocket, 'credentials.add', { label: 'test', ...request })
}

/** Whether a node with these variables keeps everything in the usual data directory. */
export function isEmbedded(env: Record<string, string>): boolean {
  return !('HUB_DATA_DIR' in env || 'HUB_REDIS_URL' in env || 'HUB_CONFIG' in env)
}
