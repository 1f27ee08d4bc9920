import pino from 'pino'
import t from 'tap'
import { createRequestLog } from '../../bridge-https/request-log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'

const request = { reqId: 'r', method: 'GET', url: '/x?token=y', route: null, remoteAddress: '192.0.2.1' }

t.test('strangers cannot fill the log, users are logged as before', async (t) => {
  for (const status of [404, 204, 200]) {
    const { lines, note, metrics } = start()
    for (let count = 0; count < 5_000; count++) note({ ...request, status })
    t.ok(lines.length <= 1200, `${lines.length} lines of 5,000, perhaps of two minutes`)
    const before = lines.length
    for (let count = 0; count < 2_000; count++) note({ ...request, status, userId: 'u' })
    t.equal(lines.length, before + 2_000)
    t.match(lines.slice(before), [
      { userId: 'u', leftOut: 5_000 - before, path: '/x' },
      { userId: 'u', leftOut: undefined },
    ])
    t.match(String(await metrics.exposition()), new RegExp(`status="${status}"} 7000`))
  }
})

t.test('a line that the log level leaves out does not count for the limit', async (t) => {
  const { lines, note } = start()
  for (let count = 0; count < 5_000; count++) note({ ...request, status: 200 }, 'debug')
  note({ ...request, status: 404 })
  t.match(lines, [{ status: 404, leftOut: undefined }])
})

function start() {
  const lines: Record<string, unknown>[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const metrics = createMetrics()
  return { lines, metrics, note: createRequestLog({ log, metrics }) }
}
