import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Redis } from 'ioredis'
import root, { type Test } from 'tap'
import { freePort } from './free-port.ts'
import { checkStoredKeys } from './stored-keys.ts'

/** False if redis-server is installed, otherwise why tests that need Redis are skipped. */
export const withoutRedis =
  spawnSync('redis-server', ['--version']).status === 0
    ? false
    : 'NOT TESTED: there is no redis-server (apt-get install redis-server)'

export type RedisServer = Awaited<ReturnType<typeof startRedis>>

/** Adds a test that has a redis-server of its own (`startRedis`). */
export function onRedis(name: string, test: (t: Test, redis: RedisServer) => Promise<void>): void {
  root.test(name, { skip: withoutRedis }, async (t) => test(t, await startRedis(t)))
}

/**
 * Starts a redis-server on a free loopback port, in a new directory, until the test ends. Each write is on disk before
 * the answer, so a kill loses no acknowledged write. `settings` are lines of `redis.conf`.
 */
export async function startRedis(
  t: Test,
  settings: readonly string[] = [],
  mode: 'server' | 'sentinel' = 'server',
) {
  const { Redis: Client } = await import('ioredis')
  const directory = mkdtempSync(join(tmpdir(), 'hub-redis-'))
  const port = await freePort()
  const configuration = join(directory, 'redis.conf')
  const ofServer = ['save ""', 'appendonly yes', 'appendfsync always']
  const lines = [`port ${port}`, 'bind 127.0.0.1', `dir ${directory}`, ...(mode === 'server' ? ofServer : [])]
  writeFileSync(configuration, [...lines, ...settings].join('\n'))
  const start = () => startProcess([configuration, ...(mode === 'sentinel' ? ['--sentinel'] : [])])
  let running = await start()
  const clients: Redis[] = []

  async function kill(): Promise<void> {
    running.child.kill('SIGKILL')
    await running.ended
  }
  t.teardown(async () => {
    for (const client of clients) client.disconnect()
    try {
      if (mode === 'server') await checkStoredKeys(port)
    } finally {
      await kill()
      rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
    }
  })

  return {
    port,
    directory,
    url: `redis://127.0.0.1:${port}`,
    /** Kills the server, like kill -9. */
    kill,
    /** Kills the server, and starts it again with the same port and content. */
    async restart(): Promise<void> {
      await kill()
      running = await start()
    },
    /** The server stops answering, but keeps all connections open. */
    pause: () => running.child.kill('SIGSTOP'),
    resume: () => running.child.kill('SIGCONT'),
    /** A client of the test itself, to read and change the content of Redis. */
    client(options: object = {}): Redis {
      const client = new Client({ port, ...options })
      client.on('error', () => {}) // tests kill the server
      clients.push(client)
      return client
    },
  }
}

async function startProcess(args: readonly string[]) {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const output: string[] = []
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      output.push(line)
      if (/Ready to accept connections|Sentinel ID is/.test(line)) resolve()
    })
    void ended.then(() => reject(new Error(`redis-server ended:\n${output.join('\n')}`)))
  })
  return { child, ended }
}
