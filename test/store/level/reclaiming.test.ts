import { randomBytes } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startReclaiming, type Written } from '../../../store/level/reclaiming.ts'
import { openStore } from '../../open-store.ts'

const second = 1000
const enough = 200_000

t.test('the disk has the space of removed entries again', async (t) => {
  const directory = join(t.testdir(), 'store')
  const store = await openStore(t, directory)
  const key = (number: number) => `entry/${String(number).padStart(8, '0')}`
  const [page, bytes] = [10_000, 150]
  const pages = Array.from({ length: enough / page + 1 }, (_, nth) =>
    Array.from({ length: page }, (_, number) => nth * page + number),
  )
  for (const numbers of pages) {
    const random = randomBytes(page * bytes)
    const value = (nth: number) => random.subarray(nth * bytes, (nth + 1) * bytes)
    await store.commit(numbers.map((number, nth) => ({ put: key(number), value: value(nth) })))
  }
  for (const numbers of pages.slice(0, -1))
    await store.commit(numbers.map((number) => ({ del: key(number) })))
  const full = await bytesBelow(directory)
  t.ok(full > 10e6, `${full} bytes before`)

  const deadline = Date.now() + 30 * second
  while ((await bytesBelow(directory)) > full / 2 && Date.now() < deadline) {
    await store.commit([{ put: 'time', value: String(Date.now()) }])
    await delay(100)
  }
  const left = await bytesBelow(directory)
  t.ok(left <= full / 2, `${left} bytes of ${full}`)
  t.ok(await store.get(key(enough)), 'what is kept can be read')
})

t.test('nothing is compacted', async (t) => {
  t.test('for a few removed keys', async (t) => {
    const { written, passes, ranges } = open(t)
    passes(10 * second)
    written({ removed: enough - 1, bytes: 0 })
    t.strictSame(ranges, [])
  })

  t.test('while much is written, but afterwards', async (t) => {
    const { written, passes, ranges } = open(t)
    passes(10 * second)
    written({ removed: enough, bytes: 10 * 5_000_000 })
    t.strictSame(ranges, [])
    passes(10 * second)
    written({ removed: 0, bytes: 1 })
    t.equal(ranges.length, 1)
  })

  t.test('a second time while a compaction runs', async (t) => {
    const { written, passes, ranges, end } = open(t)
    passes(10 * second)
    written({ removed: enough, bytes: 0 })
    passes(10 * second)
    written({ removed: enough, bytes: 0 })
    t.equal(ranges.length, 1)
    await end()
    passes(10 * second)
    written({ removed: 0, bytes: 0 })
    t.equal(ranges.length, 2)
  })
})

t.test('a compaction that failed is tried again', async (t) => {
  const { written, passes, ranges, end } = open(t)
  passes(10 * second)
  written({ removed: enough, bytes: 0 })
  await end(new Error('the disk is full'))
  passes(10 * second)
  written({ removed: 0, bytes: 0 })
  t.equal(ranges.length, 2)
})

/** A database that only records the ranges to compact, with a clock that the test moves. */
function open(t: Test) {
  let time = 0
  const ranges: string[][] = []
  let done: (error?: Error) => void = () => undefined
  const compactRange = (...range: string[]) => {
    ranges.push(range)
    return new Promise<void>((resolve, reject) => {
      done = (error) => (error ? reject(error) : resolve())
    })
  }
  const reclaiming = startReclaiming({ compactRange }, () => time)
  t.teardown(reclaiming.stop)
  return {
    ranges,
    written({ removed, bytes }: Written) {
      reclaiming.written.removed += removed
      reclaiming.written.bytes += bytes
      reclaiming.look()
    },
    passes(ms: number) {
      time += ms
    },
    async end(error?: Error) {
      done(error)
      await delay(0)
    },
  }
}

async function bytesBelow(directory: string): Promise<number> {
  const names = await readdir(directory)
  // LevelDB may remove a file between `readdir` and `stat`.
  const sizes = names.map(
    async (name) => (await stat(join(directory, name)).catch(() => undefined))?.size ?? 0,
  )
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}
