import t from 'tap'
import { followLog } from '../../../store/redis/log.ts'
import { keysOf } from '../../../store/redis/script.ts'

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
      keys: keysOf('hub:test'),
      node: 'a',
      position: '0-0',
      seen: () => '0-0',
      listener: () => undefined,
      onLost: () => undefined,
      onReading: () => undefined,
      upSince: () => 0,
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
