import pino from 'pino'
import t from 'tap'
import { createLimit, mostLimited } from '../../telemetry/limit.ts'
import type { Log } from '../../telemetry/log.ts'

t.test(
  'while the store fails, the log has the first lines of a minute, and says how many it left out',
  async (t) => {
    const lines: Record<string, unknown>[] = []
    let now = 0
    const hooks = { logMethod: createLimit(() => now) }
    const log: Log = pino({ hooks }, { write: (line: string) => lines.push(JSON.parse(line)) })
    const fail = (event: string) => log.error({ err: 'full', event }, 'event not stored and not acknowledged')
    for (let number = 1; number <= mostLimited + 5; number++) fail(`${number}`)
    log.error({ err: 'full', clientId: 'a' }, 'log-in not stored')
    t.strictSame(
      lines.map(({ event, clientId }) => event ?? clientId),
      [...Array.from({ length: mostLimited }, (_, index) => `${index + 1}`), 'a'],
      'each text for itself',
    )
    t.notOk(lines.some((line) => 'leftOut' in line))

    now = 60_000
    log.child({ node: 'b' }).error({ err: 'full', event: 'next' }, 'event not stored and not acknowledged')
    fail('last')
    t.match(lines.slice(-2), [{ node: 'b', event: 'next', err: 'full', leftOut: 5 }, { event: 'last' }])
    t.notOk('leftOut' in (lines.at(-1) ?? {}), 'they are counted once')
  },
)

t.test('other messages are all written', async (t) => {
  let lines = 0
  const log: Log = pino({ hooks: { logMethod: createLimit() } }, { write: () => void lines++ })
  for (let number = 0; number < 100; number++) log.info({ queue: 'a', failures: 1 }, 'queue goes on')
  for (let number = 0; number < 100; number++) log.warn('the other nodes took this one for dead')
  t.equal(lines, 200)
})
