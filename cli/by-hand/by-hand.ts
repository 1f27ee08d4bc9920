import type { ByHand } from '../command.ts'
import { events } from './events.ts'
import { feed } from './feed.ts'
import { httpsApi } from './https-api.ts'
import { importAedes } from './import.ts'
import { audit, status, trend } from './node.ts'
import { report } from './report.ts'
import { trace } from './trace.ts'
import { webhooks } from './webhooks.ts'

/**
 * What the row of an operation cannot say: prints that people love to read, options that are no arguments, and answers
 * that are no success.
 */
export const byHand: ByHand = {
  status,
  trend,
  audit,
  ...feed,
  ...webhooks,
  ...events,
  ...report,
  ...httpsApi,
  trace,
  'import.aedes-redis': importAedes,
}
