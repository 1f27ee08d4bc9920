import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { withoutRedis } from '../../redis-server.ts'
import { commandOf } from '../../root.ts'

const [command = '', ...words] = commandOf('bench/bench.ts')

// Nodes with workers load no code of the bench, and Redis is none of ours: the hardest to end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  t.test(`${signal} leaves no process and no folder`, { skip: withoutRedis }, async (t) => {
    const { bench, folder, exited } = await startWorkers(t)
    bench.kill(signal)
    t.equal(await exited, 128 + constants.signals[signal])
    await untilGone(t, folder)
  })
}

t.test('kill -9 leaves no process', { skip: withoutRedis }, async (t) => {
  const { bench, folder, exited } = await startWorkers(t)
  bench.kill('SIGKILL')
  await exited
  await untilNoProcess(folder)
})

t.test('a node that cannot start leaves no folder', async (t) => {
  // The node refuses this number of sessions.
  const { folder, exited } = start(t, ['sessions', '--only', 'crash', '--peers', 'hub', '--crashed', '1e30'])
  t.equal(await exited, 1)
  await untilGone(t, folder)
})

async function startWorkers(t: Test) {
  const options = ['workers', '--subscribers', '3', '--warm', '24', '--runs', '999']
  const started = start(t, options)
  await new Promise<void>((resolve) => {
    started.bench.stderr.on('data', (text) => String(text).includes('subscribers connect') && resolve())
  })
  const count = processesIn(started.folder).length
  t.ok(count >= 6, 'two Redis, two primaries, workers, load generators')
  return started
}

function start(t: Test, options: readonly string[]) {
  // Not `t.testdir`: the paths of sockets in it would be too long.
  const folder = mkdtempSync(join(tmpdir(), 'hub-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const bench = spawn(command, [...words, ...options], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.teardown(() => bench.kill('SIGKILL'))
  return { bench, folder, exited: once(bench, 'exit').then(([code]) => Number(code)) }
}

/** Resolves when nothing is left in a folder, and no process has been told of it. */
async function untilGone(t: Test, folder: string): Promise<void> {
  const left = readdirSync(folder).filter((name) => /^hub-bench-/.test(name))
  t.strictSame(left, [])
  await untilNoProcess(folder)
}

async function untilNoProcess(folder: string): Promise<void> {
  // The kernel needs a moment to end them, and workers see that their primary has ended.
  while (processesIn(folder).length > 0) await delay(20)
}

/** The processes that were told of a folder, or work in it. */
function processesIn(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const told = ['cmdline', 'environ'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8'))
      return [...told, readlinkSync(`/proc/${pid}/cwd`)].some((text) => text.includes(folder))
    } catch {
      return false
    }
  })
}
