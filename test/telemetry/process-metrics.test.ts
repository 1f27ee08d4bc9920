import t from 'tap'
import { processMetrics } from '../../telemetry/process-metrics.ts'

t.test('the counters of the processor count from the start of the process', async (t) => {
  // Work before the first call: at least what it took to load this test.
  const before = process.cpuUsage()
  const text = await processMetrics().metrics()
  const seconds = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  t.ok(before.user > 0, 'something was done before')
  t.ok(seconds('process_cpu_user_seconds_total') >= before.user / 1e6)
  t.ok(seconds('process_cpu_system_seconds_total') >= before.system / 1e6)
  t.ok(seconds('process_cpu_seconds_total') >= (before.user + before.system) / 1e6)
})
