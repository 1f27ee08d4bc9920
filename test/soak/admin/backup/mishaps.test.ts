import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, copyFile, lchown, lstat, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gunzipSync, gzipSync } from 'node:zlib'
import pino from 'pino'
import type { Test } from 'tap'
import t from 'tap'
import { createAudit } from '../../../../admin/audit.ts'
import { createBackupCommands, offeredName } from '../../../../admin/backup/backup-commands.ts'
import { checkFile, linesOf } from '../../../../admin/backup/export-file.ts'
import { exported } from '../../../../admin/backup/exporting.ts'
import { importWaiting } from '../../../../admin/backup/importing.ts'
import { ensureDataDirectory } from '../../../../config/expected.ts'
import { createPerform } from '../../../../operations/perform.ts'
import { keyOf } from '../../../../store/commit.ts'
import type { Change, Dumpable, Store, StoredRecord } from '../../../../store/store.ts'
import { runHubctl } from '../../../cli/run-hubctl.ts'
import { openStore } from '../../../open-store.ts'
import { hubctlCommand } from '../../../root.ts'
import { temporaryDirectory } from '../../../start-hub.ts'

const records = Array.from({ length: 5_000 }, (_, nth) =>
  record(`topic/${nth}`, `{"id":"${nth}","createdAt":"2026-01-01T00:00:00Z"}`),
)

t.test('a file that changes while it is taken in', async (t) => {
  const { store, dataDir } = await emptyStore(t)
  const file = await writeExport(t, records)
  for (const [reason, other] of [
    [/no whole gzip file/, await writeText(t, 'text')],
    [/was changed while it was read/, await writeExport(t, records.slice(1))],
  ] as const) {
    await copyFile(file, join(dataDir, 'import'))
    const changing = {
      ...store,
      // The import calls `dump` between its two readings of the file.
      async *dump() {
        await copyFile(other, join(dataDir, 'import'))
        yield* store.dump()
      },
    }
    await t.rejects(importWaiting(changing, dataDir, silent), reason)
    t.ok(await store.get('import/mark'), 'leaves a store that no node uses')
    await t.rejects(importWaiting(store, dataDir, silent), /is not its file: put that one there, or empty/)
  }
  await copyFile(file, join(dataDir, 'import'))
  t.match(await importWaiting(store, dataDir, silent), { done: { records: records.length } })
  t.equal(await countOf(store), records.length)
  t.notOk(await store.get('import/mark'))
})

t.test('of two starts with the same file the later one takes it in, and nothing is missing', async (t) => {
  const { store, dataDir } = await emptyStore(t)
  const [file, elsewhere] = [await writeExport(t, records), await temporaryDirectory(t)]
  for (const at of [dataDir, elsewhere]) await copyFile(file, join(at, 'import'))
  const puts = (changes: readonly Change[], key: string) =>
    changes.some((change) => 'put' in change && change.put === key)
  const steps = new EventEmitter()
  const wiped = once(steps, 'wiped')
  const formerIsOver = once(steps, 'former is over')
  const later = beforeCommit(store, async (changes) => {
    if (!puts(changes, 'topic/0')) return
    steps.emit('wiped')
    await formerIsOver
  })
  let taken: ReturnType<typeof importWaiting> | undefined
  const former = beforeCommit(store, async (changes) => {
    if (!puts(changes, 'topic/4000')) return
    taken = importWaiting(later, elsewhere, silent)
    await wiped
  })
  await t.rejects(importWaiting(former, dataDir, silent), /import\/mark is not as expected/)
  steps.emit('former is over')
  t.match(await taken, { done: { records: records.length } })
  t.equal(await countOf(store), records.length)
  t.match(await importWaiting(store, dataDir, silent), { done: {} }, 'the former one finds it done')
  t.notOk(existsSync(join(dataDir, 'import')))
})

t.test('a node that joins while an import begins keeps it from the store', async (t) => {
  const { store, dataDir } = await emptyStore(t)
  await copyFile(await writeExport(t, records), join(dataDir, 'import'))
  const member = { put: 'member/00', value: JSON.stringify({ node: 'b', name: 'b:1', number: 1 }) }
  const joined = beforeCommit(store, async (changes) => {
    if (changes.some((change) => keyOf(change) === 'import/mark')) await store.commit([member])
  })
  t.match(await importWaiting(joined, dataDir, silent), { refused: /nodes use the store \(b:1\)/ })
  t.notOk(await store.get('import/mark'))
  t.equal(await countOf(store), 0)
})

t.test('a file with a valid checksum is refused where its content is in no export', async (t) => {
  for (const hostile of [
    record('import/mark', 'x'),
    record('member/00', '{}'),
    record('lock/trim', '{}'),
    record('number', 'NaN'),
    record('number', '9007199254740991'),
    record('number', '-1'),
  ]) {
    const file = await writeExport(t, [...records.slice(0, 3), hostile])
    await t.rejects(checkFile(file), { name: 'UnusableFile' }, hostile.key)
  }
})

t.test('a line of more records than memory has room for is refused before it is read as JSON', async (t) => {
  const header = gunzipSync(await readFile(await writeExport(t, [])))
  for (const values of ['["a",1,""],', '[', '{},']) {
    const line = values.repeat(Math.ceil(9e6 / values.length))
    const file = await writeText(t, gzipSync(`${header.toString().split('\n')[0]}\n[${line}1]\n`))
    await t.rejects(checkFile(file), /a line has too many records/)
  }
})

t.test('a long audit log is exported a thousand lines at a time, and taken in whole', async (t) => {
  const { store, dataDir } = await emptyStore(t)
  const entries = Array.from({ length: 3_000 }, (_, nth) => {
    const at = new Date(Date.UTC(2026, 2, 1) + Math.floor(nth / 7)).toISOString()
    return JSON.stringify({ at, who: 'me', action: 'a', target: `ü\u2028${nth}`, detail: null })
  })
  const log = `${entries.join('\n')}\n`
  await writeFile(join(dataDir, 'audit.log'), log)
  const exporting = exported({ store, dataDir, release: '1', clock: Date.now })
  const lines: unknown[] = []
  for await (const line of exporting) lines.push(line)
  t.ok(lines.every((line) => !Array.isArray(line) || line.length <= 1_000))
  t.match(lines.at(-1), { records: entries.length })
  const other = await emptyStore(t)
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  await copyFile(await writeText(t, gzipSync(text)), join(other.dataDir, 'import'))
  await importWaiting(other.store, other.dataDir, silent)
  t.equal(await readFile(join(other.dataDir, 'audit.log'), 'utf8'), log)
})

t.test('lines of the audit log stand in the order of their times', async (t) => {
  const { store, dataDir } = await emptyStore(t)
  const line = (hour: number) =>
    JSON.stringify({
      at: `2026-03-01T0${hour}:00:00.000Z`,
      who: 'me',
      action: 'a',
      target: 't',
      detail: null,
    })
  await writeFile(join(dataDir, 'audit.log'), `${line(1)}\n${line(3)}\n`)
  const of = [2, 3].map((hour) => record(`audit/2026-03-01T0${hour}:00:00.000Z x`, line(hour)))
  await copyFile(await writeExport(t, of), join(dataDir, 'import'))
  await importWaiting(store, dataDir, silent)
  t.equal(await readFile(join(dataDir, 'audit.log'), 'utf8'), `${line(1)}\n${line(2)}\n${line(3)}\n`)
})

t.test('without its entry in the audit log nothing is exported or imported', async (t) => {
  const { store, dataDir } = await emptyStore(t)
  await symlink('/dev/full', join(dataDir, 'audit.log'))
  const offered = join(dataDir, offeredName)
  await writeFile(offered, '')
  const audit = createAudit(join(dataDir, 'audit.log'), Date.now)
  const of = {
    store,
    dataDir,
    audit,
    clock: Date.now,
    run: '1',
    imported: undefined,
    hasWorkers: false,
    restart: undefined,
  }
  const perform = createPerform({ commands: createBackupCommands(of), log: silent })
  for (const name of ['export', 'import']) {
    t.match(await perform(name, {}, 'kim'), {
      error: { code: 'refused', message: /the audit log cannot be written \(ENOSPC/ },
    })
  }
  t.ok(existsSync(offered))
})

t.test('hubctl import', async (t) => {
  const file = await writeExport(t, records)

  t.test('that finds no room takes its copy away again', async (t) => {
    const dataDir = await temporaryDirectory(t)
    const answer = await runHubctl(['import', file, '--stopped'], {
      env: { HUB_DATA_DIR: dataDir },
      fileBlocks: 8,
    })
    t.match(answer, { code: 1, stderr: /EFBIG|file too large/i })
    t.notOk(existsSync(join(dataDir, 'import.offered')))
  })

  t.test('that is interrupted takes its copy away again', async (t) => {
    const dataDir = await temporaryDirectory(t)
    const noise = Array.from({ length: 60_000 }, () => {
      const id = randomBytes(300).toString('hex')
      return record(`topic/${id}`, JSON.stringify({ id, createdAt: '2026-01-01T00:00:00Z' }))
    })
    const large = await writeExport(t, noise)
    const copy = join(dataDir, 'import.offered')
    const [program = '', ...entry] = hubctlCommand
    const importing = spawn(program, [...entry, 'import', large, '--stopped'], {
      env: { ...process.env, HUB_DATA_DIR: dataDir },
    })
    const said = text(importing.stderr)
    while (!existsSync(copy) && importing.exitCode === null) await nextTurn()
    importing.kill('SIGSTOP')
    t.ok((await lstat(copy)).size < (await lstat(large)).size, 'it is under way')
    importing.kill('SIGINT')
    importing.kill('SIGCONT')
    t.same(await once(importing, 'close'), [1, null])
    t.equal(await said, 'hubctl: nothing was imported: ended by SIGINT\n')
    t.notOk(existsSync(copy))
  })

  t.test('says so where the node has taken in another file', async (t) => {
    const socket = join(await temporaryDirectory(t), 'admin.sock')
    let hasBegun = false
    const node = createServer((request, response) => {
      const isAsked = request.url === '/import.outcome'
      const result = isAsked && hasBegun ? { run: 'b', last: 'another' } : { run: 'a' }
      hasBegun ||= !isAsked
      response.end(JSON.stringify({ result }))
    })
    node.listen(socket)
    await once(node, 'listening')
    t.teardown(() => node.close())
    const answer = await runHubctl(['--socket', socket, 'import', file])
    t.match(answer, { code: 1, stderr: /has started again without this file/ })
  })

  t.test('refuses a pipe, which it could not read twice', async (t) => {
    const pipe = await pipeIn(await temporaryDirectory(t))
    const answer = await runHubctl(['import', pipe, '--stopped'])
    t.match(answer, { code: 2, stderr: /FILE must be a file of hubctl export/ })
  })
})

t.test('hubctl export', async (t) => {
  const dir = await temporaryDirectory(t)
  const socket = join(dir, 'admin.sock')
  const [header = '', ...rest] = gunzipSync(await readFile(await writeExport(t, records)))
    .toString()
    .split(/(?<=\n)/)
  const steps = new EventEmitter()
  let stalls: 'never' | 'at once' | 'behind its beginning' = 'never'
  const node = createServer((_request, response) => {
    if (stalls !== 'at once') response.write(header)
    if (stalls === 'never') response.end(rest.join(''))
    else steps.emit('stalled')
  })
  await once(node.listen(socket), 'listening')
  t.teardown(() => node.close())
  t.teardown(() => node.closeAllConnections())

  t.test('refuses to replace a pipe, and writes behind a symbolic link', async (t) => {
    const pipe = await pipeIn(dir)
    t.match(await runHubctl(['--socket', socket, 'export', pipe]), {
      code: 2,
      stderr: /FILE must be a file, or a name that is still free/,
    })
    t.ok((await lstat(pipe)).isFIFO())
    const [target, link] = [join(dir, 'target'), join(dir, 'link')]
    await writeFile(target, '')
    await symlink(target, link)
    t.match(await runHubctl(['--socket', socket, 'export', link]), { code: 0 })
    t.ok((await lstat(link)).isSymbolicLink())
    t.match(await checkFile(target), { records: records.length })
  })

  t.test('refuses a link of another user in a folder where everyone may make files', async (t) => {
    if (process.getuid?.() !== 0) {
      t.pass('only root can make files of others')
      return
    }
    const shared = join(dir, 'shared')
    await mkdir(shared)
    await chmod(shared, 0o1777)
    const target = join(dir, 'of-root')
    await writeFile(target, 'precious')
    await symlink(target, join(shared, 'link'))
    await symlink(dir, join(shared, 'folder'))
    for (const name of ['link', 'folder']) await lchown(join(shared, name), 65534, 65534)
    for (const file of [join(shared, 'link'), join(shared, 'folder', 'of-root')]) {
      const answer = await runHubctl(['--socket', socket, 'export', file])
      t.match(answer, { code: 2, stderr: /is a link of another user in a folder that everyone may write to/ })
    }
    t.equal(await readFile(target, 'utf8'), 'precious')
    await t.rejects(ensureDataDirectory(join(shared, 'folder', 'data')), /HUB_DATA_DIR/)
    await lchown(join(shared, 'link'), 0, 0)
    t.match(await runHubctl(['--socket', socket, 'export', join(shared, 'link')]), { code: 0 })
    t.match(await checkFile(target), { records: records.length }, "a link of one's own is followed")
  })

  t.test('that is interrupted leaves no draft, which would hold keys', async (t) => {
    const file = join(dir, 'interrupted')
    const [program = '', ...entry] = hubctlCommand
    for (stalls of ['at once', 'behind its beginning'] as const) {
      const exporting = spawn(program, [...entry, '--socket', socket, 'export', file])
      const said = text(exporting.stderr)
      await once(steps, 'stalled')
      while (stalls !== 'at once' && !existsSync(`${file}.part`)) await nextTurn()
      exporting.kill('SIGINT')
      t.same(await once(exporting, 'close'), [1, null])
      t.equal(await said, 'hubctl: nothing was exported: ended by SIGINT\n')
      t.notOk(existsSync(`${file}.part`))
      t.notOk(existsSync(file))
    }
  })

  t.test('that is interrupted while the file is checked ends as well', async (t) => {
    const ended = new AbortController()
    const checked = checkFile(await writeExport(t, records), ended.signal)
    ended.abort(new Error('ended by SIGINT'))
    await t.rejects(checked, { message: 'ended by SIGINT' })
  })
})

async function pipeIn(dir: string): Promise<string> {
  const path = join(dir, 'pipe')
  execFileSync('mkfifo', [path])
  return path
}

const silent = pino({ level: 'silent' })

function record(key: string, value: string): StoredRecord {
  return { key, value: Buffer.from(value) }
}

async function emptyStore(t: Test) {
  const dataDir = await temporaryDirectory(t)
  const store = await openStore(t, join(dataDir, 'store'))
  return { store, dataDir }
}

async function writeExport(t: Test, of: readonly StoredRecord[]): Promise<string> {
  const pages = async function* () {
    yield of
  }
  const lines: string[] = []
  for await (const line of linesOf({ release: '1', at: '', from: 'embedded' }, pages()))
    lines.push(`${JSON.stringify(line)}\n`)
  return writeText(t, gzipSync(lines.join('')))
}

async function writeText(t: Test, content: string | Buffer): Promise<string> {
  const file = join(await temporaryDirectory(t), 'hub.export')
  await writeFile(file, content)
  return file
}

async function countOf(store: Store): Promise<number> {
  let count = 0
  for await (const _ of store.range('topic/')) count++
  return count
}

/** The same store, but it runs `happens` before each commit. */
function beforeCommit(
  store: Store & Dumpable,
  happens: (changes: readonly Change[]) => Promise<void>,
): Store & Dumpable {
  return {
    ...store,
    async commit(changes) {
      await happens(changes)
      return store.commit(changes)
    },
  }
}
