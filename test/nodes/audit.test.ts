import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createAudit } from '../../admin/audit.ts'
import { createSharedSpace } from '../shared-store.ts'

const entry = { who: 'kim', action: 'credentials.add', target: 'pub-a-1', detail: null }

function openNodes(t: Test, limit?: number) {
  const space = createSharedSpace()
  const directory = t.testdir()
  const time = { now: Date.parse('2026-03-01T12:00:00Z') }
  const open = (node: string) => {
    const store = space.openFollowed(t)
    store.start()
    const path = join(directory, `${node}.log`)
    const shared = { store, node, ...(limit !== undefined && { limit }) }
    return { store, path, audit: createAudit(path, () => time.now++, shared) }
  }
  return { a: open('a'), b: open('b') }
}

t.test('every node lists what was done on all, and where', async (t) => {
  const { a, b } = openNodes(t)
  await a.audit.record({ ...entry, target: 'first' })
  await b.audit.record({ ...entry, target: 'second' })
  await a.audit.record({ ...entry, target: 'third' })
  for (const { audit } of [a, b]) {
    t.match(await audit.list(), [
      { node: 'a', target: 'first', who: 'kim' },
      { node: 'b', target: 'second' },
      { node: 'a', target: 'third' },
    ])
  }
  t.match(JSON.parse((await readFile(b.path, 'utf8')).trimEnd()), { node: 'b', target: 'second' })
})

t.test('the oldest entries go from the store, and stay in the file', async (t) => {
  const { a, b } = openNodes(t, 20)
  for (let index = 0; index < 130; index++) await a.audit.record({ ...entry, target: `${index}` })
  await b.audit.record({ ...entry, target: 'last' })
  const listed = await a.audit.list()
  t.equal(listed.length, 20)
  t.match(listed.at(-1), { target: 'last' })
  t.equal((await readFile(a.path, 'utf8')).trimEnd().split('\n').length, 130)
})

t.test('what the store did not take is told, and is not in the file', async (t) => {
  const { a } = openNodes(t)
  a.store.cut()
  await t.rejects(a.audit.record(entry))
  a.store.restore()
  await a.audit.record({ ...entry, target: 'later' })
  t.equal((await a.audit.list()).length, 1)
  t.match(
    (await readFile(a.path, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [{ target: 'later' }],
  )
})

t.test('what the file did not take no node lists', async (t) => {
  const { a, b } = openNodes(t)
  await symlink('/dev/full', a.path)
  await t.rejects(a.audit.record(entry), { code: 'ENOSPC' })
  t.strictSame(await b.audit.list(), [])
})

t.test('an entry that was stored without an answer goes with the next one', async (t) => {
  const { a, b } = openNodes(t)
  const commit = a.store.commit
  a.store.commit = async (changes) => {
    await commit(changes)
    a.store.cut()
    throw Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })
  }
  await t.rejects(a.audit.record(entry), { code: 'ETIMEDOUT' })
  t.match(await b.audit.list(), [{ target: entry.target }])
  a.store.commit = commit
  a.store.restore()
  await a.audit.record({ ...entry, target: 'later' })
  const listed = await b.audit.list()
  t.match(listed, [{ target: 'later' }])
  t.equal(listed.length, 1)
})
