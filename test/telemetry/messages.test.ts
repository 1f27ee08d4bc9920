import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import type { Log } from '../../telemetry/log.ts'
import { messages } from '../../telemetry/messages.ts'
import { root } from '../root.ts'

const elsewhere = /^(\.|test$|bench$|demo$|client$|docs$|deploy$|findings$|node_modules$|dist$|data$)/

t.test('each message of the table is logged somewhere', async (t) => {
  const paths = readdirSync(root, { withFileTypes: true }).flatMap((entry) => {
    if (elsewhere.test(entry.name)) return []
    if (entry.isFile()) return [entry.name]
    return readdirSync(join(root, entry.name), { recursive: true }).map((file) =>
      join(entry.name, String(file)),
    )
  })
  const texts = paths
    .filter((path) => path.endsWith('.ts') && path !== 'telemetry/messages.ts')
    .map((path) => readFileSync(join(root, path), 'utf8'))
  for (const message of Object.keys(messages)) {
    const [beginning = ''] = message.split('…')
    t.ok(
      texts.some((text) => text.includes(`'${message}'`) || text.includes(`\`${beginning}\${`)),
      message,
    )
  }
})

t.test('the log takes no other text, level or field', async (t) => {
  const lines: unknown[] = []
  const log: Log = pino({}, { write: (line: string) => lines.push(line) })
  log.info({ queue: 'a', failures: 1 }, 'queue goes on')
  // @ts-expect-error another level
  log.warn({ queue: 'a', failures: 1 }, 'queue goes on')
  // @ts-expect-error another text
  log.info({ queue: 'a', failures: 1 }, 'queue goes')
  // @ts-expect-error a field is missing
  log.info({ queue: 'a' }, 'queue goes on')
  // @ts-expect-error a field is strange
  log.info({ queue: 'a', failures: 1, strange: 1 }, 'queue goes on')
  // @ts-expect-error all fields are missing
  log.info('queue goes on')
  t.equal(lines.length, 6, 'the check is one of types')
})
