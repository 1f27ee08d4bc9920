import pino from 'pino'
import t from 'tap'
import { createRequestLog } from '../../bridge-https/request-log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'

t.test('strangers cannot fill the log with refused requests, users are logged as before', async (t) => {
  const lines: Record<string, unknown>[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const metrics = createMetrics()
  const note = createRequestLog({ log, metrics })
  const request = { reqId: 'r', method: 'GET', url: '/x?token=y', route: null, remoteAddress: '192.0.2.1' }
  for (let count = 0; count < 5_000; count++) note({ ...request, status: 404 })
  t.ok(lines.length <= 1200, `${lines.length} lines of 5,000, perhaps of two minutes`)
  const before = lines.length
  note({ ...request, status: 404, userId: 'u' })
  note({ ...request, status: 200 })
  t.match(lines.slice(before), [
    { userId: 'u', leftOut: 5_000 - before, path: '/x' },
    { status: 200, leftOut: undefined },
  ])
  t.match(await metrics.registry.metrics(), /status="404"\} 5001/)
})
