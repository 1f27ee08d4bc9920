import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openEmbeddedStore } from '../../store/embedded.ts'
import type { Condition, Store } from '../../store/store.ts'
import { openStore } from '../open-store.ts'
import { commandOf, root } from '../root.ts'
import { storeSuite } from './suite.ts'

storeSuite(t, async (t) => {
  const directory = join(t.testdir(), 'store')
  let current = await openEmbeddedStore(directory)
  t.teardown(() => current.close())
  return {
    store: current,
    async reopen() {
      await current.close()
      current = await openEmbeddedStore(directory)
      return current
    },
  }
})

t.test('a commit is underway, in the order of the calls, before it resolves', async (t) => {
  const store = await openStore(t)
  const keys = Array.from({ length: 100 }, (_, index) => `k${index}`)
  const begun: string[] = []
  const resolved: string[] = []
  await Promise.all(
    keys.map(async (key) => {
      await store.commit([{ put: `k/${key}`, value: key }], () => {
        t.notOk(resolved.includes(key))
        begun.push(key)
      })
      resolved.push(key)
    }),
  )
  t.strictSame(begun, keys)
  t.strictSame(resolved, keys)
})

t.test('a commit with nothing before it is underway at once, the next one behind it', async (t) => {
  const store = await openStore(t)
  const begun: string[] = []
  const commit = (key: string) => store.commit([{ put: `k/${key}`, value: key }], () => begun.push(key))
  const first = commit('first')
  t.strictSame(begun, ['first'])
  const second = commit('second')
  t.strictSame(begun, ['first'])
  await Promise.all([first, second])
  t.strictSame(begun, ['first', 'second'])
})

for (const when of ['before the write is slow', 'while it is slow'] as const) {
  t.test(
    `behind a slow write commits are underway up to one with conditions, come they ${when}`,
    async (t) => {
      const store = await openStore(t)
      const seen: string[] = []
      const commit = (
        key: string,
        { value = key, when }: { value?: string | Buffer; when?: Condition } = {},
      ) =>
        store
          .commit([{ put: `k/${key}`, value, ...(when && { when }) }], () => seen.push(key))
          .then(() => seen.push(`${key} is stored`))
      // No disk takes this in a few milliseconds.
      const large = commit('large', { value: Buffer.alloc(128 * 1024 * 1024) })
      const others = [commit('second')]
      if (when === 'while it is slow') while (!seen.includes('second')) await nextTurn()
      others.push(commit('third'), commit('conditional', { when: 'absent' }), commit('behind'))
      await large
      t.strictSame(seen, ['large', 'second', 'third', 'large is stored'])
      await Promise.all(others)
      t.strictSame(
        seen.filter((word) => !word.endsWith('stored')),
        ['large', 'second', 'third', 'conditional', 'behind'],
      )
    },
  )
}

t.test('a commit with conditions is underway only if they hold', async (t) => {
  const store = await openStore(t)
  const begun: string[] = []
  const commit = (key: string, when?: Condition) =>
    store.commit([{ put: `k/${key}`, value: key, ...(when && { when }) }], () => begun.push(key))
  await t.rejects(commit('none', 'present'), { name: 'ConditionFailed' })
  t.strictSame(begun, [], 'not even the next one that is stored')
  const conditional = commit('first', 'absent')
  t.strictSame(begun, [])
  const [, twice] = [commit('plain'), commit('first', 'absent')]
  const last = commit('last', 'absent').then(() => begun.push('and resolved'))
  await Promise.all([conditional, t.rejects(twice, { name: 'ConditionFailed' }), last])
  t.strictSame(begun, ['first', 'plain', 'last', 'and resolved'])
})

t.test('what is underway knows its first number', async (t) => {
  const store = await openStore(t)
  const begun: [string, number][] = []
  const commit = (key: string, count: number, when?: Condition) => {
    const entries = Array.from({ length: count }, (_, nth) => {
      return { put: `n/${key}/`, value: '', numbered: { nth, at: 'key' as const } }
    })
    const underway = (first: number) => begun.push([key, first])
    return store.commit([{ put: `k/${key}`, value: '', ...(when && { when }) }, ...entries], underway)
  }
  const silent = () => store.commit([{ put: 'n/silent/', value: '', numbered: { nth: 0, at: 'key' } }])
  const first = commit('at once', 2)
  t.strictSame(begun, [['at once', 1]])
  t.strictSame(await Promise.all([first, silent(), commit('behind', 1), commit('none', 0)]), [1, 3, 4, 0])
  const group = [silent(), commit('failed', 1, 'present'), silent(), commit('last', 1, 'absent')]
  const outcomes = await Promise.allSettled(group)
  t.match(outcomes, [{ value: 5 }, { status: 'rejected' }, { value: 6 }, { value: 7 }])
  t.strictSame(begun, [
    ['at once', 1],
    ['behind', 4],
    ['none', 0],
    ['last', 7],
  ])
})

t.test('event times are remembered, whatever wrote or removed the entry', async (t) => {
  const store = await openStore(t)
  const put = (value: string, time: number) =>
    store.commit([{ put: 'k/a', value, order: { time, horizon: Infinity } }])
  const value = async () => (await store.get('k/a'))?.toString()
  await put('newest', 3)
  await put('older', 2)
  t.equal(await value(), 'newest')
  await store.commit([{ put: 'k/a', value: 'without time' }])
  await put('old', 1)
  t.equal(await value(), 'old', 'an entry without time gives way')
  await store.commit([{ del: 'k/a' }])
  await put('oldest', 0)
  t.equal(await value(), 'oldest', 'so does none')
})

t.test('what was acknowledged survives kill -9', async (t) => {
  const directory = join(t.testdir(), 'store')
  for (const round of ['first', 'second', 'third']) {
    const writer = startWriter(t, directory, round)
    await writer.until(() => writer.acknowledged().length >= 300)
    await writer.kill()
    t.strictSame(await missingIn(directory, writer.acknowledged()), [], `${round} round`)
  }
})

t.test('a write that failed half-way takes nothing with it that is acknowledged later', async (t) => {
  const directory = join(t.testdir(), 'store')
  // The limit of the file size ends a write in the middle, like a full disk.
  const writer = startWriter(t, directory, 'k', { maxFileKb: 200 })
  await writer.until(() => {
    const last = writer.lines.lastIndexOf('refused')
    return writer.lines.filter((line) => line === 'refused').length >= 5 && writer.lines.length > last + 20
  })
  await writer.kill()
  t.strictSame(await missingIn(directory, writer.acknowledged()), [])
  let isTrusted = true
  const early = writer.lines.filter((line) => {
    if (!line.startsWith('un')) isTrusted = line !== 'refused'
    return line.startsWith('underway') && !isTrusted
  })
  t.strictSame(early, [], 'and is not called underway before it is safe')
  t.ok(writer.lines.some((line) => line.startsWith('underway')))
  t.strictSame(
    writer.lines.filter((line) => line.startsWith('unread')),
    [],
    'and whoever reads meanwhile gets an answer',
  )
})

t.test('a commit that was rejected because the disk did not sync is not there later', async (t) => {
  const directory = join(t.testdir(), 'store')
  const order = { time: 1, horizon: Infinity }
  const numbered = { nth: 0, at: 'value' } as const
  const entries = async (store: Store) => {
    const found: string[] = []
    for await (const [key, value] of store.range('k/')) found.push(`${key} ${value}`)
    return found
  }
  const store = await openEmbeddedStore(directory)
  await store.commit([
    { put: 'k/changed', value: 'before', order },
    { put: 'k/removed', value: 'before' },
  ])
  const before = await entries(store)
  const disk = breakSync(directory)
  const rejected = store.commit([
    { put: 'k/changed', value: 'rejected', order: { ...order, time: 9 } },
    { put: 'k/added', value: 'rejected' },
    { put: 'k/numbered', value: '', numbered },
    { del: 'k/removed' },
  ])
  await t.rejects(rejected, /Invalid argument/)
  disk.keepWritten()
  t.same(await entries(store), before)
  const mend = damageFiles(directory)
  const tried = store.commit([{ put: 'k/tried', value: 'rejected' }])
  await t.rejects(tried, { code: 'LEVEL_DATABASE_NOT_OPEN' })
  await t.rejects(store.get('k/changed'), 'nothing is read before the rejected commit is undone')
  mend()
  await store.commit([{ put: 'k/next', value: 'stored', numbered }])
  const after = ['k/changed before', 'k/next 0000000000000002stored', 'k/removed before']
  t.same(await entries(store), after)
  const begun: number[] = []
  const newer = { put: 'k/changed', value: 'newer', order: { ...order, time: 2 } }
  const stored = store.commit([newer], (first) => begun.push(first))
  t.strictSame(begun, [0], 'the disk is trusted again: the commit is underway at once')
  await stored
  await store.close()
  const again = await openStore(t, directory)
  t.same(await entries(again), ['k/changed newer', ...after.slice(1)])
})

t.test('a store whose log cannot be read waits for it, and loses nothing', async (t) => {
  const directory = join(t.testdir(), 'store')
  const store = await openEmbeddedStore(directory)
  const put = (key: string) => store.commit([{ put: key, value: '' }])
  const entries = async () => (await store.last('k/', 9)).map(([key]) => key)
  await put('k/stored')
  const { path } = breakSync(directory)
  await t.rejects(put('k/rejected'), /Invalid argument/)
  renameSync(path, `${path}.aside`)
  symlinkSync(path, path) // no user can open it
  for (let attempt = 0; attempt < 2; attempt++) await t.rejects(put('k/rejected'), { code: 'ELOOP' })
  renameSync(`${path}.aside`, path)
  await put('k/next')
  t.same(await entries(), ['k/stored', 'k/next'])
  await store.close()
})

t.test('a store whose files are gone is not taken for an empty one', async (t) => {
  const directory = join(t.testdir(), 'store')
  const store = await openEmbeddedStore(directory)
  const put = (key: string) => store.commit([{ put: key, value: '' }])
  await put('k/stored')
  breakSync(directory)
  await t.rejects(put('k/rejected'), /Invalid argument/)
  renameSync(directory, `${directory}.aside`)
  for (let attempt = 0; attempt < 2; attempt++) await t.rejects(put('k/rejected'))
  rmSync(directory, { recursive: true, force: true })
  renameSync(`${directory}.aside`, directory)
  await put('k/next')
  t.ok(await store.get('k/stored'))
  await store.close()
})

t.test('one process per directory', async (t) => {
  const directory = join(t.testdir(), 'store')
  const writer = startWriter(t, directory, 'k')
  await writer.until(() => writer.lines.length > 0)
  await t.rejects(openEmbeddedStore(directory), {
    message: `the store in ${directory} is in use by another process`,
  })
  await writer.kill()
  await (await openEmbeddedStore(directory)).close()
})

t.test('a place that cannot hold a store is named with the reason', async (t) => {
  const directory = join(t.testdir({ file: 'no directory' }), 'file')
  await t.rejects(openEmbeddedStore(directory), {
    message: `the store in ${directory} cannot be opened`,
    cause: { code: 'EEXIST' },
  })
})

t.test('a directory in use is not damaged', async (t) => {
  const directory = join(t.testdir(), 'store')
  const store = await openEmbeddedStore(directory)
  await t.rejects(
    openEmbeddedStore(directory, () => t.fail('moved')),
    { message: /in use/ },
  )
  await store.commit([{ put: 'a/b', value: 'c' }])
  await store.close()
})

t.test(
  'who reads while the store is opened again waits, and sees nothing of a rejected commit',
  async (t) => {
    const directory = join(t.testdir(), 'store')
    const store = await openStore(t, directory)
    await store.commit([{ put: 'k/a', value: 'before' }])
    const disk = breakSync(directory)
    await t.rejects(store.commit([{ put: 'k/a', value: 'rejected' }]), /Invalid argument/)
    disk.keepWritten()
    let isStored = false
    const next = store.commit([{ put: 'x/next', value: '' }]).then(() => {
      isStored = true
    })
    while (filesOf(directory).length > 0 && !isStored) await nextTurn()
    const read: string[] = []
    const get = async () => read.push(`${await store.get('k/a')}`)
    const getLast = async () => read.push(`${(await store.last('k/', 1))[0]?.[1]}`)
    const range = async () => {
      for await (const [, value] of store.range('k/')) read.push(`${value}`)
    }
    const dump = async () => {
      for await (const page of store.dump())
        for (const { key, value } of page) if (key === 'k/a') read.push(`${value}`)
    }
    await Promise.all([get(), getLast(), range(), dump()])
    t.strictSame(read, Array(4).fill('before'))
    await next
  },
)

/**
 * Makes every sync of the store in `directory` fail. LevelDB's log becomes a FIFO, which takes writes but cannot be
 * synced. `keepWritten` appends the writes to the log file, `path`.
 */
function breakSync(directory: string): { path: string; keepWritten(): void } {
  const fifo = `${directory}.fifo`
  execFileSync('mkfifo', [fifo])
  const log = filesOf(directory).find(({ path }) => path.endsWith('.log'))
  if (!log) throw new Error('LevelDB has no log open')
  const own = openSync(fifo, 'r+')
  closeSync(log.fd)
  // The system gives out the lowest free descriptor. Open the FIFO until it gets the descriptor of the log.
  const opened: number[] = []
  while (opened.at(-1) !== log.fd) opened.push(openSync(fifo, 'r+'))
  for (const fd of opened.slice(0, -1)) closeSync(fd)
  return {
    path: log.path,
    keepWritten() {
      const written = Buffer.alloc(64 * 1024)
      appendFileSync(log.path, written.subarray(0, readSync(own, written)))
      closeSync(own)
    },
  }
}

/** Makes every opening of the store in `directory` fail, until the returned function is called. */
function damageFiles(directory: string): () => void {
  const current = join(directory, 'CURRENT')
  const sound = readFileSync(current)
  writeFileSync(current, 'damaged')
  return () => writeFileSync(current, sound)
}

/** The files of the store in `directory` that are open. */
function filesOf(directory: string): { fd: number; path: string }[] {
  const links = readdirSync('/proc/self/fd').map((fd) => ({ fd: Number(fd), path: pathOf(Number(fd)) }))
  return links.filter(({ path }) => path.startsWith(`${directory}/`))
}

function pathOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}

/** A process that commits to the store in `directory` until it is killed. */
function startWriter(t: Test, directory: string, prefix: string, { maxFileKb = 0 } = {}) {
  const node = [...commandOf('test/store/writer.ts'), directory, prefix]
  const limit = maxFileKb > 0 ? `ulimit -S -f ${maxFileKb * 2};` : ''
  const child = spawn('sh', ['-c', `${limit} exec "$@"`, 'sh', ...node], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  const lines: string[] = []
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line))
  const kill = async () => {
    child.kill('SIGKILL')
    await closed
  }
  t.teardown(kill)

  return {
    lines,
    acknowledged: () => lines.filter((line) => line !== 'refused' && !line.startsWith('underway')),
    /** Waits until the lines that the process has printed meet a condition. */
    async until(isReached: () => boolean): Promise<void> {
      const ended = closed.then(([code, signal]) => {
        throw new Error(`the writer ended by itself: ${code ?? signal}`)
      })
      while (!isReached()) await Promise.race([once(reader, 'line'), ended])
      ended.catch(() => {}) // From here on, the end of the process is no error.
    },
    kill,
  }
}

async function missingIn(directory: string, keys: string[]): Promise<string[]> {
  const store = await openEmbeddedStore(directory)
  const missing: string[] = []
  for (const key of keys) if ((await store.get(key)) === undefined) missing.push(key)
  await store.close()
  return missing
}
