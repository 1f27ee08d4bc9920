import { appendFile, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createAudit } from '../../admin/audit.ts'
import { refusal } from '../../operations/errors.ts'
import { OutcomeUnknown } from '../../store/store.ts'

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

t.test('a node does other work while it reads a long log', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const lines = Array.from({ length: 20_000 }, (_, nth) =>
    JSON.stringify({ ...stored, target: `ü\u2028${nth}` }),
  )
  await writeFile(path, lines.join('\n'))
  const { parse } = JSON
  let parsedInTurn = 0
  let most = 0
  JSON.parse = (text) => {
    most = Math.max(most, ++parsedInTurn)
    return parse(text)
  }
  t.teardown(() => {
    JSON.parse = parse
  })
  let isRead = false
  const everyTurn = () => {
    parsedInTurn = 0
    if (!isRead) setImmediate(everyTurn)
  }
  everyTurn()
  const entries = await createAudit(path, clock).list()
  isRead = true
  t.same([entries.length, entries[0]?.target, entries.at(-1)?.target], [20_000, 'ü\u20280', 'ü\u202819999'])
  t.ok(most < 2_000, `in one turn it parses ${most} lines`)
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

t.test('a change has its entry before it, and a second one when it fails', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const audit = createAudit(path, clock)
  const made = await audit.change('kim', 'credentials.add', async (first) => {
    await first('pub-a-1', null)
    t.match(await audit.list(), [{ target: 'pub-a-1' }], 'written when the change begins')
    return 'made'
  })
  t.equal(made, 'made')
  await t.rejects(
    audit.change('kim', 'credentials.revoke', async (first) => {
      await first('pub-a-1', null)
      throw new Error('the disk is full')
    }),
    { name: 'Failure', message: 'the change failed, as the audit log says; the log of the node says why' },
  )
  const noAnswer = new OutcomeUnknown('Redis did not answer')
  await t.rejects(
    audit.change('kim', 'keys.rotate', async (first) => {
      await first('kid', null)
      throw noAnswer
    }),
    { message: /^the store did not answer: it is not known whether the change was made, as the audit log/ },
  )
  t.match((await audit.list()).slice(1), [
    { action: 'credentials.revoke', target: 'pub-a-1', detail: null },
    { action: 'credentials.revoke', target: 'pub-a-1', detail: { failed: 'the disk is full' } },
    { action: 'keys.rotate', detail: null },
    { action: 'keys.rotate', detail: { failed: 'Redis did not answer' } },
  ])
})

t.test('a refusal before the entry leaves none, one after it is told in its own words', async (t) => {
  const audit = createAudit(join(t.testdir(), 'audit.log'), clock)
  const refused = { name: 'Refusal', message: 'there is no session "x"' }
  await t.rejects(
    audit.change('kim', 'sessions.drop', async () => {
      throw refusal('there is no session "x"')
    }),
    refused,
  )
  t.strictSame(await audit.list(), [])
  await t.rejects(
    audit.change('kim', 'sessions.drop', async (first) => {
      await first('x', null)
      throw refusal('there is no session "x"')
    }),
    refused,
  )
  t.match(await audit.list(), [{ target: 'x' }, { detail: { failed: 'there is no session "x"' } }])
})

t.test('without its entry a change is not made', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  await symlink('/dev/full', path)
  let isMade = false
  await t.rejects(
    createAudit(path, clock).change('kim', 'credentials.add', async (first) => {
      await first('pub-a-1', null)
      isMade = true
    }),
    {
      name: 'Refusal',
      message: /^nothing was changed: the audit log cannot be written \(ENOSPC: no space left on device/,
    },
  )
  t.equal(isMade, false)
})
