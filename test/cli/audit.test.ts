import { appendFile, readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createAudit } from '../../admin/audit.ts'

const clock = () => Date.parse('2026-03-01T12:00:00Z')
const entry = { who: 'kim', action: 'credentials.add', target: 'pub-a-1', detail: { role: 'publisher' } }
const stored = { at: '2026-03-01T12:00:00.000Z', ...entry }

t.test('entries are JSON lines, in order', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const audit = createAudit(path, clock)
  t.strictSame(await audit.list(), [], 'none before the first')
  await Promise.all([1, 2, 3].map((target) => audit.record({ ...entry, target: `pub-${target}` })))
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
  t.strictSame(
    lines.map((line) => JSON.parse(line).target),
    ['pub-1', 'pub-2', 'pub-3'],
  )
  t.strictSame(Object.keys(JSON.parse(lines[0] ?? '')), ['at', 'who', 'action', 'target', 'detail'])
  t.match(await createAudit(path, clock).list(), [
    { target: 'pub-1' },
    { target: 'pub-2' },
    { target: 'pub-3' },
  ])
  t.equal((await stat(path)).mode & 0o777, 0o600)
})

t.test('a line a crash cut short stops neither reading nor writing', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const audit = createAudit(path, clock)
  await audit.record(entry)
  await appendFile(path, '{"at":"2026-03-01T12:00:00.000Z","who":"ki')
  t.strictSame(await audit.list(), [stored])
  await audit.record(entry)
  t.strictSame(await audit.list(), [stored, stored])
})

t.test('line breaks in a value do not forge an entry', async (t) => {
  const audit = createAudit(join(t.testdir(), 'audit.log'), clock)
  const target = `x\n${JSON.stringify({ ...stored, who: 'mallory' })}\n`
  await audit.record({ ...entry, target })
  t.strictSame(await audit.list(), [{ ...stored, target }])
})

t.test('a log rotated away starts anew', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const audit = createAudit(path, clock)
  await audit.record(entry)
  await rename(path, `${path}.1`)
  await audit.record(entry)
  t.strictSame(await audit.list(), [stored])
})

t.test('what cannot be written is told, and the next entry is tried again', async (t) => {
  const path = join(t.testdir(), 'missing', 'audit.log')
  const audit = createAudit(path, clock)
  await t.rejects(audit.record(entry), { code: 'ENOENT' })
  await t.rejects(audit.record(entry), { code: 'ENOENT' })
})
