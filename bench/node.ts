import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt'
import { call } from '../cli/connection.ts'
import { compiledServer } from '../test/compiled-server.ts'
import { root } from '../test/root.ts'
import { shareSigningKey } from '../test/signing-key.ts'
import { askable, countingOf, profiling, usageOf } from './child.ts'
import { makeFolder, spawnUntilEnd } from './ending.ts'

/** The V8 options of `npm start`. */
export const v8Options = v8OptionsOf(root)

/** A compiled node: its program, the project folder with the options to start it with, and the Node.js that runs it. */
export interface Build {
  server: string
  project: string
  /** By default the Node.js of the bench. */
  runtime?: string | undefined
}

/** Longest wait until a node is ready, milliseconds. */
const patienceMs = 300_000
/** Longest wait until a node ends by itself, milliseconds. */
const stopMs = 30_000

export type BenchNode = Awaited<ReturnType<typeof startNode>>

/** How a node is started. */
export interface NodeStart {
  /** Words to put in front of the command. */
  command?: readonly string[] | undefined
  /** The node loads no code of the bench, and `usage` does not work. */
  alone?: boolean
  /** The node of another commit. By default that of this checkout. */
  build?: Build | undefined
}

/** Starts a node in a new process and directory. `env` overrides the bench's variables. */
export async function startNode(
  env: Record<string, string> = {},
  { command = [], alone = false, build }: NodeStart = {},
) {
  const {
    server,
    project,
    runtime = process.execPath,
  }: Build = build ?? {
    server: await compiledServer(),
    project: root,
  }
  const home = makeFolder()
  const options = [...v8OptionsOf(project), ...(alone ? [] : askable), ...profiling('server')]
  const node = [runtime, ...options, server]
  const [program = '', ...args] = [...command, ...node]
  const variables = { HUB_DATA_DIR: join(home, 'data'), ...env }
  // Making a key takes a third of a second. A node of another commit may store keys in another way.
  if (!build && !('HUB_REDIS_URL' in env)) await shareSigningKey(variables.HUB_DATA_DIR)
  const began = performance.now()
  const child = spawnUntilEnd(program, args, {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      HUB_MQTT_PORT: '0',
      HUB_HTTPS_PORT: '0',
      HUB_PUBLISH_RATE: '0',
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  if (!child.stdout) throw new Error('no output')
  let said = ''
  child.stderr?.on('data', (chunk) => {
    said += chunk
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const ready = new Promise<{ mqttPort: number; httpsPort: number; adminSocket: string }>((resolve) => {
    lines.on('line', (line) => {
      const entry = JSON.parse(line)
      if (entry.msg === 'hub ready') resolve(entry)
    })
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs)
  const failed = exited.then(([code]) => Promise.reject(new Error(`the node ended with ${code}: ${said}`)))
  const { mqttPort, httpsPort, adminSocket } = await Promise.race([ready, failed])
  const readyMs = performance.now() - began
  clearTimeout(timer)
  lines.close()
  child.stdout.resume()
  const ca = readFileSync(env.HUB_TLS_CA ?? join(home, 'certs', 'ca.pem'))

  async function ask<Result>(command: string, args: Record<string, unknown> = {}): Promise<Result> {
    const answer = await call(adminSocket, command, args, 'bench')
    if ('error' in answer) throw new Error(answer.error.message)
    return answer.result as Result
  }

  return {
    ask,
    /** Connects a client with a new credential: a publisher of `institution`, or else a subscriber of `radio/#`. */
    async connect(institution?: string, options: IClientOptions = {}): Promise<MqttClient> {
      const request = institution
        ? { role: 'publisher', label: 'bench', institutions: [institution] }
        : { role: 'subscriber', label: 'bench', filters: ['radio/#'] }
      const { username, password } = await ask<{ username: string; password: string }>(
        'credentials.add',
        request,
      )
      const address = { protocol: 'mqtts', host: 'localhost', port: mqttPort, ca } as const
      const client = await connectAsync({ ...address, username, password, reconnectPeriod: 0, ...options })
      // Otherwise the bench would measure Nagle's algorithm instead of the node.
      if (client.stream instanceof Socket) client.stream.setNoDelay(true)
      client.on('error', () => {})
      return client
    },
    mqttPort,
    httpsPort,
    ca,
    pid: child.pid ?? 0,
    /** From the start of the process until its log line `hub ready`, milliseconds. */
    readyMs,
    usage: usageOf(child),
    counting: countingOf(child),
    /** Undefined while the node runs, then its exit code or signal. */
    ended: () => child.exitCode ?? child.signalCode ?? undefined,
    async stop(): Promise<void> {
      child.kill('SIGTERM')
      // An overloaded node may not end in time.
      const timer = setTimeout(() => child.kill('SIGKILL'), stopMs)
      await exited
      clearTimeout(timer)
      await rm(home, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

function v8OptionsOf(project: string): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  return scripts.start.match(/--(?!import)[\w-]+=\d+/g) ?? []
}
