import { mock } from 'node:test'
import t from 'tap'
import { followLog } from '../../../store/redis/log.ts'
import { keysOf } from '../../../store/redis/script.ts'

/** Settings of a reader that begins at the first entry and ignores all changes. */
const fromTheBeginning = {
  keys: keysOf('hub:test'),
  node: 'a',
  position: '0-0',
  seen: () => '0-0',
  isAwaited: () => false,
  listener: () => undefined,
  onLost: () => undefined,
  onReading: () => undefined,
  upSince: () => 0,
}

t.test('a gap is reported also if Redis does not answer at first', async (t) => {
  let isAnswering = false
  const asked: string[] = []
  const gaps: Error[] = []
  const reported = new Promise<void>((resolve) => {
    const reader = followLog({
      connection: {
        ready: async () => undefined,
        async send(command: string) {
          asked.push(command)
          if (command !== 'hget') return null
          if (isAnswering) return Buffer.from('7-0')
          isAnswering = true
          throw new Error('Redis did not answer')
        },
        close: () => undefined,
      } as never,
      ...fromTheBeginning,
      onGap(reason) {
        gaps.push(reason)
        resolve()
      },
      onOwn: async () => [],
    })
    t.teardown(() => reader.close())
    reader.mustLeap(new Error('lost'))
  })
  await reported
  t.match(gaps, [{ message: 'lost' }])
  t.equal(asked.filter((command) => command === 'hget').length, 2)
})

t.test('entries gather between two reads while many come and nobody waits for them', async (t) => {
  const timers = mock.timers
  timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => timers.reset())
  let now = 0
  const clock = mock.method(performance, 'now', () => now)
  t.teardown(() => clock.mock.restore())
  let reads = 0
  let last = 0
  let resolveRead = (_answer: unknown) => {}
  const nextEntry = () => [
    Buffer.from(`${++last}-0`),
    ['writer', 'b 1 ', 'previous', `${last - 1}-0`, 'withoutEffect', '', 'changes', ''].map((text) =>
      Buffer.from(text),
    ),
  ]
  let isAwaited = false
  const reader = followLog({
    connection: {
      ready: async () => undefined,
      send(command: string) {
        if (command !== 'xread') return Promise.resolve([[]])
        reads++
        return new Promise((resolve) => {
          resolveRead = resolve
        })
      },
      close: () => resolveRead(null),
    } as never,
    ...fromTheBeginning,
    isAwaited: () => isAwaited,
    onGap: (reason) => t.fail(reason.message),
    onOwn: async () => [],
  })
  const turns = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  /** Answers the read that waits with so many entries, 100 ms later. */
  const answer = async (count: number) => {
    now += 100
    resolveRead([[Buffer.from('log'), Array.from({ length: count }, nextEntry)]])
    await turns()
  }
  await turns()
  await answer(3)
  t.equal(reads, 2, 'it reads on at once after few entries')
  await answer(4)
  t.equal(reads, 2, 'it lets many gather')
  timers.tick(100)
  await turns()
  t.equal(reads, 3, 'for 100 ms')
  await answer(32)
  t.equal(reads, 4, 'it reads on at once after an answer that may not have all entries')
  await answer(4)
  t.equal(reads, 4)
  reader.hurry()
  await turns()
  t.equal(reads, 5, 'it reads on at once when it is told to hurry')
  await answer(4)
  t.equal(reads, 5)
  const passed = new Promise<void>((resolve) => reader.whenPassed(`${last + 1}-0`, resolve))
  await turns()
  t.equal(reads, 6, 'and when somebody waits for an entry')
  isAwaited = true
  await answer(4)
  await passed
  t.equal(reads, 7, 'and while a commit of this node waits')
  await reader.close()
})
