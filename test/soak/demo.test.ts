import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import stringWidth from 'string-width'
import tap, { type Test, test } from 'tap'
import { sampleFeedPath } from '../../config/sample-feed.ts'
import { createScreen, cut } from '../../demo/screen.ts'
import { root } from '../root.ts'
import { temporaryDirectory } from '../start-hub.ts'
import { createBrowser, skip } from '../web/browser.ts'

/** Where the demonstrations make their directories, and where tsx keeps what it has compiled. */
const TMPDIR = await temporaryDirectory(tap)

const time = String.raw`^\d\d:\d\d:\d\d`

test('npm run demo ends by itself, with everything arrived', async (t) => {
  const { code, output } = await demo(t, ['npm', 'run', '-s', 'demo', '--', '--seconds', '5'])
  t.equal(code, 0)
  t.notMatch(output, '\u001b', 'plain lines when piped')
  const lines = [
    `${time}  app  Küstenwelle 1 +playing +Mira Hollund – Ebbe und Flut +\\d+\\.\\d ms$`,
    `${time}  car  Küstenwelle 1 +playing +Mira Hollund – Ebbe und Flut +\\d+\\.\\d ms$`,
    `${time}  app  Küstenwelle 1 +next +The Lantern Keepers – Salt on the Window +\\d+\\.\\d ms$`,
    `${time}  car  Küstenwelle 1 +control +traffic-announcement on +\\d+\\.\\d ms$`,
    `${time}  car  Küstenwelle 1 +control +traffic-announcement off +\\d+\\.\\d ms$`,
    `${time}  app  Bergland 3 Gipfelklang +data +Gipfelklang – Studio: 0800 555 0123 +\\d+\\.\\d ms$`,
    `${time}  fb   Bergland Rundfunk +published  playing · Bergland 3 Gipfelklang$`,
    `${time}  fb   Bergland Rundfunk +blocked    playing · Küstenwelle 1$`,
    '^ +service.institution.mismatch at .services.0: The livestream belongs to another institution',
    `${time}  fb   Küstenfunk Nord +invalid    playing · Küstenwelle 1$`,
    '^ +required.openapi.validation at .title: A required field is missing',
    '^  events published +\\d+$',
    '^  blocked +1  a foreign livestream$',
    '^  invalid +1  a malformed event$',
    '^  publish to receipt +p50 \\d+\\.\\d ms, p99 \\d+\\.\\d ms of 220 ms$',
    '^  publish to report +p50 \\d+\\.\\d ms, p99 \\d+\\.\\d ms, then the event is on disk$',
    '^Everything accepted arrived; what had to be refused was refused.$',
  ]
  for (const line of lines) t.match(output, new RegExp(line, 'm'))
  const [, arrived, awaited] = /arrivals +(\d+) of (\d+)/.exec(output) ?? []
  t.ok(Number(arrived) > 0)
  t.equal(arrived, awaited)
  t.notMatch(output, new RegExp(`${time}  car  (?!Küstenwelle 1 )`, 'm'), 'the car hears its livestream only')
})

test('Ctrl-C ends the demonstration with its sums', async (t) => {
  let asked = false
  const { code, output } = await demo(
    t,
    [process.execPath, '--import=tsx', 'demo/demo.ts'],
    (line, child) => {
      if (line.includes('playing') && !asked) {
        asked = true
        child.kill('SIGINT')
      }
    },
  )
  t.equal(code, 0)
  t.match(output, /Everything accepted arrived/)
})

test('every livestream comes on air, with covers', { skip }, async (t) => {
  let seen: Promise<void> | undefined
  const { code } = await demo(t, [process.execPath, '--import=tsx', 'demo/demo.ts'], (line, child, home) => {
    const [, port] = /What is on air: https:\/\/localhost:(\d+)/.exec(line) ?? []
    if (port) seen ??= look(Number(port), home).finally(() => child.kill('SIGINT'))
  })
  await seen
  t.equal(code, 0)

  async function look(httpsPort: number, home: string): Promise<void> {
    const name = (await readdir(home)).find((one) => one.startsWith('hub-demo-')) ?? ''
    const { page } = await createBrowser(t).open(t, { httpsPort, caPath: join(home, name, 'certs/ca.pem') })
    const { items } = JSON.parse(await readFile(sampleFeedPath, 'utf8'))
    await page
      .locator('.card .title')
      .nth(items.length - 1)
      .waitFor({ state: 'attached' })
    t.equal(await page.locator('.card .title').count(), items.length)
    await page.waitForFunction(
      `[...document.querySelectorAll('.card img')].some((image) => image.naturalWidth > 0)`,
    )
  }
})

test('a wrong option is a usage error', async (t) => {
  for (const [option, complaint] of [
    [['--seconds', 'x'], /seconds must be a number from 1 to 86400/],
    [['--rate', '0'], /rate must be a number from 0.1 to 500/],
    [['--colour'], /unknown option '--colour'/],
    [['more'], /too many arguments/],
  ] as const) {
    const { code, output, errors } = await demo(t, [
      process.execPath,
      '--import=tsx',
      'demo/demo.ts',
      ...option,
    ])
    t.equal(code, 2)
    t.equal(output, '')
    t.match(errors, complaint)
  }
})

test('the screen cuts by columns, not by characters', async (t) => {
  t.equal(cut('Küstenwelle', 11), 'Küstenwelle')
  t.equal(cut('Küstenwelle 1 Haffland', 12), 'Küstenwelle…')
  t.equal(cut('Ku\u0308stenwelle', 3), 'Ku\u0308…')
  t.equal(cut('夜明けの音楽隊', 6), '夜明…')

  const lines: string[] = []
  const terminal = { isTTY: true, columns: 80, write: (line: string) => lines.push(line.trimEnd()) }
  const screen = createScreen(terminal, () => 'Küstenwelle 1 mit einem sehr langen Namen')
  for (const title of [
    '夜明けの音楽隊と港の灯り、そして長い夜の終わりに',
    'Übermorgenland in voller Länge, ungekürzt',
  ]) {
    screen.arrival({ subscriber: 'app', kind: 'playing', livestreamId: 'x', event: { title }, ms: 3 })
  }
  const plain = lines.map((line) => line.replaceAll(new RegExp(`${'\u001b'}\\[\\d+m`, 'g'), ''))
  for (const line of plain) {
    t.equal(stringWidth(line), 80)
    t.match(line, '…')
  }
})

/** Runs the demonstration, and checks that it removes its directory. */
async function demo(
  t: Test,
  [command = '', ...args]: string[],
  onLine: (line: string, child: ReturnType<typeof spawn>, home: string) => void = () => {},
) {
  // The demonstration must ignore the settings of the user's own node. HUB_MQTT_PORT=none would stop the demonstration.
  const env = { ...process.env, TMPDIR, HUB_MQTT_PORT: 'none' }
  const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.on('data', (chunk) => onLine(String(chunk), child, TMPDIR))
  const ended = once(child, 'exit')
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = await ended
  const left = (await readdir(TMPDIR)).filter((name) => name.startsWith('hub-demo-'))
  t.same(left, [], 'its directory is gone')
  return { code, output, errors }
}
