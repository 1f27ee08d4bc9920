import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { openOutbox } from '../../client/outbox.ts'
import { evaluate, moduleOf, projectFile, root } from '../root.ts'
import { temporaryDirectory } from '../start-hub.ts'

const event = (number: number) => JSON.stringify({ event: 'de.org.hub.v1.radio.data', number })

t.test('what was kept and not settled is there again, with client id and age', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const first = openOutbox(path)
  const [, two, three] = [1, 2, 3].map((number) => first.add(event(number)))
  await three?.synced
  first.settled(two?.number ?? 0)
  await first.close()
  const second = openOutbox(path)
  t.teardown(() => second.close())
  t.equal(second.clientId, first.clientId)
  t.match(second.restored, [{ payload: event(1) }, { payload: event(3) }])
  t.ok(second.restored.every(({ ageMs }) => ageMs >= 0 && ageMs < 60_000))
  t.equal(second.damaged, 0)
})

t.test('after its end, an outbox writes nothing: the file may be in use by another process', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const first = openOutbox(path)
  const { number, synced } = first.add(event(1))
  await synced
  await first.close()
  const second = openOutbox(path)
  t.teardown(() => second.close())
  const before = readFileSync(path, 'utf8')
  first.settled(number)
  first.rename('another-id')
  await second.add(event(2)).synced
  t.equal(readFileSync(path, 'utf8').startsWith(before), true)
  t.match(readFileSync(path, 'utf8').split('\n').length, 4, 'a head, two events and the end')
})

t.test('only its owner may read the file', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const outbox = openOutbox(path)
  t.teardown(() => outbox.close())
  await outbox.add(event(1)).synced
  t.equal(statSync(path).mode & 0o777, 0o600)
})

t.test(
  'what others have put beside it is neither followed nor written to, and keeps nobody waiting',
  async (t) => {
    const folder = await temporaryDirectory(t)
    const victim = join(folder, 'victim')
    const put: Record<string, (path: string) => void> = {
      'a link': (path) => symlinkSync(victim, path),
      'a file for all': (path) => {
        writeFileSync(path, '')
        chmodSync(path, 0o666)
      },
      'a queue': (path) => void execFileSync('mkfifo', [path]),
    }
    for (const [what, make] of Object.entries(put)) {
      for (const beside of ['new', `lock-${process.pid}`]) {
        const path = join(folder, `${what} ${beside}`)
        writeFileSync(victim, 'of somebody else')
        make(`${path}.${beside}`)
        const outbox = openOutbox(path)
        await outbox.add(event(1)).synced
        t.equal(readFileSync(victim, 'utf8'), 'of somebody else', path)
        t.equal(lstatSync(path).mode, 0o100600, path)
        await outbox.close()
      }
    }
    const path = join(folder, 'outbox')
    put['a queue']?.(`${path}.lock-${process.ppid}`)
    t.throws(() => openOutbox(path), { code: 'outbox.locked' })
  },
)

t.test('a file that was cut at any byte opens, without the events of torn lines only', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const outbox = openOutbox(path)
  const { clientId } = outbox
  await Promise.all([1, 2, 3].map((number) => outbox.add(event(number)).synced))
  outbox.settled(2)
  await outbox.close()
  const text = readFileSync(path, 'utf8')
  // The lines of the events are alike: the last one stands for all.
  for (let bytes = text.indexOf('{"number":3'); bytes <= text.length; bytes++) {
    const cut = text.slice(0, bytes)
    writeFileSync(path, cut)
    const opened = openOutbox(path)
    const lines = cut.split('\n').slice(1, -1)
    const wanted = lines.length === 4 ? [1, 3] : lines.map((_, index) => index + 1)
    t.match(opened, { clientId, damaged: 0 })
    t.same(
      opened.restored.map(({ payload }) => payload),
      wanted.map(event),
      `${bytes} bytes`,
    )
    await opened.close()
  }
})

t.test('after a torn line further events are kept', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const outbox = openOutbox(path)
  await outbox.add(event(1)).synced
  await outbox.close()
  writeFileSync(path, readFileSync(path, 'utf8').slice(0, -3))
  const torn = openOutbox(path)
  await torn.add(event(2)).synced
  await torn.close()
  const again = openOutbox(path)
  t.teardown(() => again.close())
  t.match(again.restored, [{ payload: event(2) }])
  t.equal(again.restored.length, 1)
})

t.test('lines that cannot be read are left out and counted', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const outbox = openOutbox(path)
  await outbox.add(event(1)).synced
  await outbox.close()
  writeFileSync(path, `${readFileSync(path, 'utf8')}\0\0\0\n{"number":2,"at":1,"payload":"no event"}\n`)
  const damaged = openOutbox(path)
  t.teardown(() => damaged.close())
  t.match(damaged.restored, [{ payload: event(1) }])
  t.equal(damaged.damaged, 2)
})

t.test('bytes that are no UTF-8 damage their line, and nothing else is sent in its place', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const outbox = openOutbox(path)
  await Promise.all([1, 2].map((number) => outbox.add(event(number)).synced))
  await outbox.close()
  const bytes = readFileSync(path)
  bytes[bytes.indexOf('radio')] = 0xff
  writeFileSync(path, bytes)
  const damaged = openOutbox(path)
  t.teardown(() => damaged.close())
  t.match(damaged.restored, [{ payload: event(2) }])
  t.equal(damaged.damaged, 1)
})

t.test('lines that are doubled, or have odd numbers, lose no event', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const line = (number: string, nth: number, at = String(Date.now())) =>
    `{"number":${number},"at":${at},"payload":${JSON.stringify(event(nth))}}\n`
  const lines = [
    '{"outbox":1,"clientId":"studio"}\n',
    line('7', 1),
    line('7', 1),
    line('9007199254740993', 2),
  ]
  writeFileSync(path, [...lines, line('1e400', 3), line('-1', 4, '1e400'), '{"settled":1e400}\n'].join(''))
  const odd = openOutbox(path)
  t.equal(odd.damaged, 1, 'that of no time')
  await Promise.all([5, 6, 7].map((number) => odd.add(event(number)).synced))
  await odd.close()
  const again = openOutbox(path)
  t.teardown(() => again.close())
  t.same(
    again.restored.map(({ payload }) => payload),
    [1, 2, 5, 6, 7].map(event),
  )
})

t.test('a file of another kind is refused, and nothing is changed', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'studio.json')
  writeFileSync(path, '{"studio":1}\n')
  t.throws(() => openOutbox(path), { code: 'outbox.unusable', message: /studio\.json is no outbox/ })
  t.equal(readFileSync(path, 'utf8'), '{"studio":1}\n')
  t.same(readdirSync(directory), ['studio.json'])
  t.throws(() => openOutbox(directory), { code: 'outbox.unusable' })
  t.throws(() => openOutbox(join(directory, 'no', 'outbox')), { code: 'outbox.unusable' })
  const queue = join(directory, 'queue')
  execFileSync('mkfifo', [queue])
  // Whoever reads the queue gets nothing, and does not wait for ever.
  const writer = spawn('sh', ['-c', ': > "$0"', queue])
  t.teardown(() => writer.kill())
  t.throws(() => openOutbox(queue), { code: 'outbox.unusable', message: /queue is no file/ })
  t.ok(statSync(queue).isFIFO(), 'and nothing was put in its place')
})

t.test('a second client of this process is refused, also by another name of the file', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'outbox')
  const outbox = openOutbox(path)
  t.throws(() => openOutbox(path), { code: 'outbox.locked' })
  symlinkSync(path, join(directory, 'link'))
  t.throws(() => openOutbox(join(directory, 'link')), { code: 'outbox.locked' })
  await outbox.close()
  await openOutbox(path).close()
})

t.test('a second process is refused, and the lock of a killed one is taken over', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const other = await holdElsewhere(t, path)
  t.throws(() => openOutbox(path), { code: 'outbox.locked', message: new RegExp(`process ${other.pid}`) })
  other.kill('SIGKILL')
  await once(other, 'exit')
  const outbox = openOutbox(path)
  t.match(outbox.restored, [{ payload: '{"event":"kept"}' }])
  await outbox.close()
  t.notOk(existsSync(`${path}.lock-${process.pid}`))
})

t.test('another thread of a process, or another copy of the package in it, is refused', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const program = `
    const load = (copy) => import(${JSON.stringify(pathToFileURL(projectFile('client/outbox-lock.ts')).href)} + copy)
    const [{ takeLock }, other] = [await load(''), await load('?other')]
    const release = takeLock(${JSON.stringify(path)})
    try {
      other.takeLock(${JSON.stringify(path)})
    } catch ({ code }) {
      console.log(code)
    }
    release()
    other.takeLock(${JSON.stringify(path)})()
    console.log('released')`
  const ran = execFileSync(process.execPath, ['--import=tsx', '--input-type=module', '-e', program], {
    cwd: root,
    encoding: 'utf8',
  })
  t.same(ran.trim().split('\n'), ['outbox.locked', 'released'])
})

t.test('a lock counts for its process only, not for a later one with the same id', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  writeFileSync(`${path}.lock-1`, 'another-boot 1')
  writeFileSync(`${path}.lock-${process.pid}`, 'another-boot 1')
  await openOutbox(path).close()
  writeFileSync(`${path}.lock-1`, '')
  t.throws(() => openOutbox(path), { code: 'outbox.locked' }, 'a file that is being made counts')
})

t.test('the file does not grow for ever', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const outbox = openOutbox(path)
  t.teardown(() => outbox.close())
  const large = JSON.stringify({ event: 'large', text: 'x'.repeat(100_000) })
  for (let count = 0; count < 50; count++) {
    const { number, synced } = outbox.add(large)
    await synced
    outbox.settled(number)
  }
  t.ok(statSync(path).size < 2_500_000, `${statSync(path).size} bytes of 5,000,000`)
})

t.test('a file that cannot be written refuses the event, and takes later ones', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'outbox')
  const outbox = openOutbox(path)
  t.teardown(() => outbox.close())
  mkdirSync(`${path}.new`)
  outbox.rename('another-id')
  await t.rejects(outbox.add(event(1)).synced, { code: 'outbox.unusable', message: new RegExp(path) })
  rmdirSync(`${path}.new`)
  await outbox.add(event(2)).synced
  t.match(readFileSync(path, 'utf8'), /another-id/)
})

t.test('on a full disk, what the last process left is there, and new events are refused', async (t) => {
  const path = join(await temporaryDirectory(t), 'outbox')
  const large = JSON.stringify({ event: 'large', text: 'x'.repeat(20_000) })
  const first = openOutbox(path)
  await first.add(large).synced
  await first.close()
  // A process that may write no file of more than 8 kB: for it, that is the same as a full disk.
  const program = `
    import { execFileSync } from 'node:child_process'
    import { openOutbox } from ${moduleOf('client/outbox.ts')}
    process.on('SIGXFSZ', () => {})
    const mayWrite = (bytes) => execFileSync('prlimit', ['--pid', process.pid, '--fsize=' + bytes + ':unlimited'])
    mayWrite('8192')
    const outbox = openOutbox(${JSON.stringify(path)})
    const refused = outbox.add(${JSON.stringify(event(2))})
    const { code, message } = await refused.synced.catch((error) => error)
    outbox.settled(refused.number)
    mayWrite('unlimited')
    await outbox.add(${JSON.stringify(event(3))}).synced
    await outbox.close()
    console.log(JSON.stringify({ restored: outbox.restored.length, code, message }))`
  const [node, ...args] = evaluate
  const told = execFileSync(node, [...args, program])
  t.match(JSON.parse(`${told}`), { restored: 1, code: 'outbox.unusable', message: /EFBIG/ })
  const again = openOutbox(path)
  t.teardown(() => again.close())
  t.same(
    again.restored.map(({ payload }) => payload),
    [large, event(3)],
  )
})

/** Another process that has the outbox, with one event in it. */
async function holdElsewhere(t: Test, path: string) {
  const program = `
    import { openOutbox } from ${moduleOf('client/outbox.ts')}
    const outbox = openOutbox(${JSON.stringify(path)})
    await outbox.add('{"event":"kept"}').synced
    console.log('held')
    setInterval(() => {}, 1000)`
  const [node, ...args] = evaluate
  const child = spawn(node, [...args, program], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}
