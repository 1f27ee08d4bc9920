import { mock } from 'node:test'
import t from 'tap'
import { followLog } from '../../../store/redis/log.ts'
import { keysOf } from '../../../store/redis/script.ts'

/** A reader from the beginning of the log, whose changes nobody wants. */
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

t.test('entries gather between two reads, until a commit of this node waits', async (t) => {
  const timers = mock.timers
  timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => timers.reset())
  let reads = 0
  let onRead = () => {}
  const entry = (id: number) => [
    Buffer.from(`${id}-0`),
    ['writer', 'b 1 ', 'previous', `${id - 1}-0`, 'withoutEffect', '', 'changes', ''].map((text) =>
      Buffer.from(text),
    ),
  ]
  const reader = followLog({
    connection: {
      ready: async () => undefined,
      async send(command: string) {
        if (command !== 'xread') return [[]]
        onRead()
        return [[Buffer.from('log'), [entry(++reads)]]]
      },
      close: () => undefined,
    } as never,
    ...fromTheBeginning,
    onGap: (reason) => t.fail(reason.message),
    onOwn: async () => [],
  })
  const nextRead = () =>
    new Promise<void>((resolve) => {
      onRead = resolve
    })
  const turns = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  await turns()
  t.equal(reads, 1, 'the reader lets entries gather')
  let read = nextRead()
  reader.hurry()
  await read
  await turns()
  t.equal(reads, 2, 'it has read on at once, and lets entries gather again')
  read = nextRead()
  const passed = new Promise<void>((resolve) => reader.whenPassed('3-0', resolve))
  await Promise.all([read, passed])
  await turns()
  t.equal(reads, 3)
  read = nextRead()
  timers.tick(1000)
  await read
  await turns()
  await reader.close()
})
