import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { openScriptedBroker } from '../../client/scripted-broker.ts'
import { startProgram } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { projectFile, root } from '../../root.ts'
import { temporaryDirectory } from '../../start-hub.ts'

/** What lets a process mount a small disk that only it sees, also without root. */
const alone = ['unshare', '--user', '--map-root-user', '--mount']
const mounting = [...alone, 'mount', '-t', 'tmpfs', '-o', 'size=64k', 'disk', tmpdir()]
/** Some containers forbid it. There the test of `test/client/outbox.test.ts`, with a limit of the file size, stands alone. */
const isPossible = spawnSync(mounting[0] ?? '', mounting.slice(1)).status === 0

/** Its lines say how the publishes end. It goes on at each line of its standard input. */
const publisher = `
import { appendFileSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
const { connectPublisher } = await import(process.env.CLIENT)
const { URL: url, CA: ca, INSTITUTION: institution, DISK: disk, EVENT } = process.env
const options = { url, ca, institution, outbox: disk + '/outbox', username: 'u', password: 'p', onProblem() {} }
const input = createInterface(process.stdin)[Symbol.asyncIterator]()
let publisher = connectPublisher(options)
const tell = (title, result) =>
  result.then(
    ({ outcome }) => console.log(title, outcome),
    ({ code, message }) => console.log(title, code, message),
  )
const publish = (title) =>
  tell(title, publisher.publish({ ...JSON.parse(EVENT), title, media: [], mpn: 'x'.repeat(20_000) }))
const fill = () => {
  for (const bytes of [4096, 1])
    try {
      for (;;) appendFileSync(disk + '/other', 'x'.repeat(bytes))
    } catch ({ code }) {
      console.log('full', code)
    }
}
const empty = () => rmSync(disk + '/other')
void publish('first')
await input.next()
fill()
void publish('refused')
await input.next()
empty()
void publish('later')
await input.next()
void publish('kept')
await input.next()
fill()
console.log('unsettled', (await publisher.close(1)).unsettled.length)
publisher = connectPublisher(options)
for (const { event, result } of publisher.restored) void tell('restored ' + event.title, result)
await input.next()
empty()
void publish('last')
await input.next()
await publisher.close()
publisher = connectPublisher(options)
console.log('left', publisher.restored.length)
await publisher.close()
`

const name =
  'on a full disk an event is refused with the path of the outbox; none that was taken is lost, and with room it goes on'
if (!isPossible) t.pass('this machine lets nobody mount a disk of its own')
else
  t.test(name, async (t) => {
    const disk = join(await temporaryDirectory(t), 'disk')
    mkdirSync(disk)
    const held: (() => void)[] = []
    const answered = new Set(['later', 'last'])
    const broker = await openScriptedBroker(t, ({ packet, proceed }) => {
      const isEvent = packet.cmd === 'publish'
      if (isEvent && !answered.has(JSON.parse(`${packet.payload}`).title)) held.push(proceed)
      else proceed()
    })
    const program = startProgram(
      t,
      [
        ...alone,
        'sh',
        '-c',
        'mount -t tmpfs -o size=256k disk "$DISK" && exec "$@"',
        'sh',
        ...[process.execPath, '--import=tsx', '--input-type=module', '-e', publisher],
      ],
      {
        cwd: root,
        env: {
          PATH: process.env.PATH ?? '',
          CLIENT: pathToFileURL(projectFile('client/node.ts')).href,
          URL: broker.url,
          CA: broker.ca,
          INSTITUTION: institutions[0] ?? '',
          DISK: disk,
          EVENT: JSON.stringify(playing(station())),
        },
      },
    )
    const goOn = () => program.write('\n')
    await broker.count(1)
    goOn()
    t.match(await program.line(/^refused (.*)/), { 1: `outbox.unusable ${disk}/outbox: ENOSPC` })
    held.shift()?.()
    await program.line(/^first published/)
    goOn()
    await program.line(/^later published/)
    goOn()
    await broker.count(3)
    goOn()
    await program.line(/^unsettled 1$/)
    await broker.count(4)
    held.pop()?.()
    await program.line(/^restored kept published/)
    goOn()
    await program.line(/^last published/)
    goOn()
    await program.line(/^left 0$/)
    program.end()
    t.equal(await program.ended, 0)
    t.same(
      broker.published.map(({ payload }) => JSON.parse(`${payload}`).title),
      ['first', 'later', 'kept', 'kept', 'last'],
      'what was refused is not sent',
    )
    t.same(program.complaints, [])
  })
