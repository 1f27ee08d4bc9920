import { readFile, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { startAdminSocket } from '../../../admin/socket.ts'
import { refusal } from '../../../operations/errors.ts'
import { listedEvent } from '../../../operations/events.ts'
import { isLineByLine } from '../../../operations/lines.ts'
import { operations } from '../../../operations/operations.ts'
import type { Commands } from '../../../operations/perform.ts'
import { completed } from '../../cli/completed.ts'
import { runHubctl as hubctl, type Run } from '../../cli/run-hubctl.ts'
import { shortDir } from '../../cli/short-dir.ts'
import { projectFile } from '../../root.ts'

const A = 'urn:org:institution:a'
const addPublisher = ['credentials', 'add', '--role', 'publisher', '--label', 'swr3', '--institution', A]
const addSubscriber = ['credentials', 'add', '--role', 'subscriber', '--label', 'player']
const issued = {
  username: 'pub-swr3-20260301120000',
  password: 'p4ssw0rd',
  role: 'publisher',
  institutions: [A],
  filters: [],
  classes: ['track'],
  createdAt: '2026-03-01T12:00:00.000Z',
}

t.test('a command reaches the node with its arguments, and with the name of the person', async (t) => {
  const node = await startNode(t)
  const { code } = await node.hubctl(['credentials', 'rotate', 'pub-a-1', '--revoke-after', '24h'])
  t.equal(code, 0)
  t.strictSame(node.asked, [
    {
      command: 'credentials.rotate',
      args: { username: 'pub-a-1', revokeAfter: 86_400 },
      who: userInfo().username,
    },
  ])
})

t.test('a list of events is an array, and where it goes on is said beside it', async (t) => {
  const node = await startNode(t, {
    'events.list': async () => ({ events: [{ position: 7, outcome: 'published', errors: [] }], next: 7 }),
  })
  const { code, stdout, stderr } = await node.hubctl(['events', 'list', '--livestream', 'l', '--json'])
  t.equal(code, 0)
  t.match(JSON.parse(stdout), [{ position: 7 }])
  t.match(stderr, /--before 7 goes on/)
})

t.test('events that are followed are printed line by line, until the node ends it', async (t) => {
  async function* tail() {
    yield completed(listedEvent, { at: '2026-03-01T18:02:00Z', outcome: 'invalid', title: 'A\u001b[31m' })
    yield { leftOut: 12 }
  }
  const node = await startNode(t, { 'events.tail': async () => tail() })
  const { code, stdout, stderr } = await node.hubctl(['events', 'tail'])
  t.equal(code, 1)
  t.match(stdout, /^2026-03-01T18:02:00Z +invalid .* A\\x1b\[31m/)
  t.match(stdout, /12 events left out/)
  t.match(stderr, /has closed/)
  const json = await node.hubctl(['events', 'tail', '--json'])
  const lines = json.stdout.trim().split('\n')
  t.match(
    lines.map((line) => JSON.parse(line)),
    [{ outcome: 'invalid' }, { leftOut: 12 }, { error: Object }],
  )
})

t.test('credentials add sends what was asked for', async (t) => {
  const node = await startNode(t)
  await node.hubctl([
    ...addPublisher,
    '--institution',
    'urn:org:institution:b',
    '--class',
    'track',
    '--class',
    'data',
  ])
  t.strictSame(node.asked.pop()?.args, {
    role: 'publisher',
    label: 'swr3',
    institutions: [A, 'urn:org:institution:b'],
    classes: ['track', 'data'],
  })
  await node.hubctl([...addSubscriber, '--allow', 'radio/#', '--allow', 'radio/+/control'])
  t.strictSame(node.asked.pop()?.args, {
    role: 'subscriber',
    label: 'player',
    filters: ['radio/#', 'radio/+/control'],
  })
})

t.test('credentials add prints the password once, as text or as the documented JSON', async (t) => {
  const node = await startNode(t, { 'credentials.add': async () => issued })
  const text = await node.hubctl(addPublisher)
  t.equal(text.code, 0)
  t.match(text.stdout, /^username +pub-swr3-20260301120000$/m)
  t.match(text.stdout, /^password +p4ssw0rd$/m)
  t.match(text.stdout, /shown only now/)
  const json = await node.hubctl([...addPublisher, '--json'])
  t.strictSame(JSON.parse(json.stdout), issued)
})

t.test('a warning goes to stderr and not into the JSON', async (t) => {
  const warning = 'the livestream feed does not know it'
  const node = await startNode(t, { 'credentials.add': async () => ({ ...issued, warning }) })
  const json = await node.hubctl([...addPublisher, '--json'])
  t.strictSame(JSON.parse(json.stdout), issued)
  t.equal(json.stderr, `warning: ${warning}\n`)
  t.equal(json.code, 0)
})

t.test('--json and --socket stand anywhere', async (t) => {
  const node = await startNode(t, { 'credentials.show': async ({ username }) => ({ username }) })
  for (const argv of [
    ['--json', '--socket', node.path, 'credentials', 'show', 'x'],
    ['credentials', '--json', '--socket', node.path, 'show', 'x'],
    ['credentials', 'show', '--socket', node.path, '--json', 'x'],
    ['credentials', 'show', 'x', '--json', '--socket', node.path],
    ['--json', 'credentials', `--socket=${node.path}`, 'show', 'x'],
  ]) {
    const { code, stdout } = await hubctl(argv)
    t.equal(code, 0)
    t.match(JSON.parse(stdout), { username: 'x' }, argv.join(' '))
  }
})

t.test('without --socket it is the one of the data directory', async (t) => {
  const node = await startNode(t, { status: async () => ({ node: 'n1' }) })
  const { code, stdout } = await hubctl(['status', '--json'], { env: { HUB_DATA_DIR: node.dir } })
  t.equal(code, 0)
  t.match(JSON.parse(stdout), { node: 'n1' })
})

t.test('without a node it says so in one line', async (t) => {
  const dir = await shortDir(t)
  const path = join(dir, 'admin.sock')
  const text = await hubctl(['status', '--socket', path])
  t.strictSame(text, {
    code: 1,
    stdout: '',
    stderr: `hubctl: no node is running on ${path} (another one: --socket PATH, or HUB_DATA_DIR as for the node)\n`,
  })
  const json = await hubctl(['--json', 'status'], { env: { HUB_DATA_DIR: dir } })
  t.equal(json.code, 1)
  t.match(JSON.parse(json.stdout), { error: { code: 'node.unreachable', message: /no node is running/ } })
  t.equal(json.stderr, '')
})

t.test('what the node refuses is told with its words', async (t) => {
  const node = await startNode(t, {
    'sessions.drop': async () => {
      throw refusal('there is no session "x"')
    },
  })
  const text = await node.hubctl(['sessions', 'drop', 'x'])
  t.strictSame(text, { code: 1, stdout: '', stderr: 'hubctl: there is no session "x"\n' })
  const json = await node.hubctl(['sessions', 'drop', 'x', '--json'])
  t.strictSame(JSON.parse(json.stdout), { error: { code: 'refused', message: 'there is no session "x"' } })
  t.equal(json.code, 1)
})

t.test('wrong usage is refused before the node is asked', async (t) => {
  const node = await startNode(t)
  const file = join(node.dir, 'event.json')
  await writeFile(file, '{}')
  const wrong: (readonly [argv: string[], message: RegExp])[] = [
    [[], /whole command/],
    [['credentials'], /whole command/],
    [['nonsense'], /unknown command 'nonsense'/],
    [['status', '--socket'], /argument missing/],
    [['status', '--socket', ''], /--socket must be a path/],
    [['status', '--socket', `/${'x'.repeat(107)}`], /longer than 107 bytes/],
    [['credentials', 'show'], /missing required argument 'username' \(hubctl credentials show --help\)/],
    [['credentials', 'rotate', 'x', '--revoke-after', 'soon'], /duration/],
    [['export', join(node.dir, 'x'), '--stopped'], /--socket and --stopped cannot be given together/],
    [['import', file, '--stopped'], /--socket and --stopped cannot be given together/],
    [['export', join(node.dir, 'x'), '--watch'], /--watch is for what only reads, not for hubctl export/],
    [['completion', 'bash', '--watch'], /--watch is for what only reads, not for hubctl completion/],
    [['check', join(node.dir, 'missing.json'), '--institution', A], /cannot read .*missing\.json/],
  ]
  await inTurns(4, wrong, async ([argv, message]) => {
    const { code, stdout, stderr } = await node.hubctl(argv)
    t.equal(code, 2, `${argv.join(' ').slice(0, 80)} ${stderr}`)
    t.match(stderr, message)
    t.match(stderr, /^hubctl: [^\n]*\n$/, 'one line')
    t.equal(stdout, '')
  })
  const json = await node.hubctl(['--json', 'credentials', 'nonsense'])
  t.equal(json.code, 2)
  t.match(JSON.parse(json.stdout), { error: { code: 'usage', message: /unknown command/ } })
  t.strictSame(node.asked, [])
})

t.test('help is no failure', async (t) => {
  for (const argv of [['--help'], ['help'], ['credentials', '--help'], ['credentials', 'add', '--help']]) {
    const { code, stdout } = await hubctl(argv)
    t.equal(code, 0)
    t.match(stdout, /Usage: hubctl/)
  }
})

t.test('--version answers without a node', async (t) => {
  const { version } = JSON.parse(await readFile(projectFile('package.json'), 'utf8'))
  t.strictSame(await hubctl(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
  t.strictSame(JSON.parse((await hubctl(['--json', '--version'])).stdout), { version })
})

t.test('lists are aligned tables, or a sentence when empty', async (t) => {
  const rows = [
    { clientId: 'a', node: 'n1', username: 'sub-player-1', address: '10.0.0.1', more: 'not shown' },
    { clientId: 'a-much-longer-one', node: 'n2', username: 'pub-x-1', address: '::1' },
  ]
  const node = await startNode(t, { 'clients.list': async () => rows, 'sessions.list': async () => [] })
  const { stdout } = await node.hubctl(['clients', 'list'])
  const lines = stdout.trimEnd().split('\n')
  t.equal(lines.length, 3)
  t.match(lines[0], /^CLIENT ID +NODE +USERNAME +ADDRESS +CONNECTED/)
  const column = lines[0]?.indexOf('USERNAME')
  t.equal(lines[1]?.indexOf('sub-player-1'), column)
  t.equal(lines[2]?.indexOf('pub-x-1'), column)
  t.match(JSON.parse((await node.hubctl(['clients', 'list', '--json'])).stdout), rows)
  t.equal((await node.hubctl(['sessions', 'list'])).stdout, 'No sessions.\n')
  t.equal((await node.hubctl(['sessions', 'list', '--json'])).stdout.trim(), '[]')
})

t.test('an empty list says only that nothing is in it, because a filter may have left out all', async (t) => {
  const lists: (readonly [typed: string, operation: string, nothing: string])[] = [
    ['clients list --username x', 'clients.list', 'No clients.'],
    ['retained list radio/x', 'retained.list', 'No retained messages.'],
    ['queues list --state closed', 'queues.list', 'No queues.'],
    [`events newest --institution ${A}`, 'events.newest', 'No livestreams.'],
    ['audit --who kim', 'audit', 'No changes.'],
  ]
  const node = await startNode(
    t,
    Object.fromEntries(lists.map(([, operation]) => [operation, async () => []])),
  )
  await inTurns(2, lists, async ([typed, , nothing]) => {
    t.equal((await node.hubctl(typed.split(' '))).stdout, `${nothing}\n`, typed)
  })
})

t.test('status shows every value with its path', async (t) => {
  const status = { node: 'n1', feed: { items: 60, ok: true }, budget: { count: 0 }, plugins: [] }
  const node = await startNode(t, { status: async () => status })
  const { stdout } = await node.hubctl(['status'])
  t.match(stdout, /^node +n1$/m)
  t.match(stdout, /^feed\.items +60$/m)
  t.match(stdout, /^feed\.ok +true$/m)
  t.match(stdout, /^plugins +-$/m)
})

t.test('destructive commands say what they did', async (t) => {
  const node = await startNode(t, {
    'credentials.revoke': async ({ username }) => ({ username, revoked: true }),
    'clients.disconnect': async ({ clientId }) => ({ clientId, disconnected: true }),
    'sessions.drop': async ({ clientId }) => ({ clientId, dropped: true }),
    'retained.clear': async ({ topic }) => ({ topic, cleared: true }),
  })
  t.equal((await node.hubctl(['credentials', 'revoke', 'pub-a-1'])).stdout, 'Revoked pub-a-1.\n')
  t.equal((await node.hubctl(['clients', 'disconnect', 'p1'])).stdout, 'Disconnected p1.\n')
  t.equal((await node.hubctl(['sessions', 'drop', 'p1'])).stdout, 'Dropped the session of p1.\n')
  t.equal((await node.hubctl(['retained', 'clear', 'radio/x/data'])).stdout, 'Cleared radio/x/data.\n')
})

t.test(
  'what becomes of a subscription is said in a sentence, and what keeps it silent in a warning',
  async (t) => {
    let state = 'delivering'
    const node = await startNode(t, {
      'subscriptions.pause': async ({ name }) => ({ name, paused: true }),
      'subscriptions.resume': async ({ name }) => ({ name, resumed: true, state, pending: 3 }),
      'subscriptions.remove': async ({ name }) => ({ name, removed: true, pending: 3, deadLetters: 2 }),
    })
    t.equal((await node.hubctl(['subscriptions', 'pause', 'one'])).stdout, 'Paused one.\n')
    const resumed = { code: 0, stdout: 'Resumed one. Messages that wait: 3.\n', stderr: '' }
    t.strictSame(await node.hubctl(['subscriptions', 'resume', 'one']), resumed)
    state = 'disabled'
    const { stdout, stderr } = await node.hubctl(['subscriptions', 'resume', 'one'])
    t.equal(stdout, resumed.stdout)
    t.match(stderr, /^warning: nothing is sent: its webhook answered 410/)
    const removed = 'Removed one. Lost with it: 3 messages that waited, 2 dead letters.\n'
    t.equal((await node.hubctl(['subscriptions', 'remove', 'one'])).stdout, removed)
  },
)

t.test('a subscription is shown with its last deliveries', async (t) => {
  const paused = { at: '2026-03-01T12:00:00.000Z', by: 'kim' }
  const shown = { name: 'one', livestream: { id: 'urn:x', title: null }, state: 'paused', paused }
  const attempt = { time: '2026-03-01T11:00:00.000Z', messageId: '7', status: 503, duration: 8, reason: 'no' }
  const node = await startNode(t, {
    'subscriptions.show': async () => ({ ...shown, disabled: null, attempts: [attempt] }),
  })
  const { stdout } = await node.hubctl(['subscriptions', 'show', 'one'])
  t.match(
    stdout,
    /^livestream\.title +-\n(?:.+\n)*state +paused\n(?:.+\n)*paused\.at +2026\S+\npaused\.by +kim\ndisabled +-\n\n/m,
  )
  t.match(stdout, /^TIME +MESSAGE +STATUS +MS +REASON\n2026\S+ +7 +503 +8 +no\n$/m)
})

t.test('of an event that came late it is said where it was not shown, and because of which', async (t) => {
  const topic = { topic: 'radio/x/track/playing', position: 7, retained: false }
  const newer = { position: 5, id: '55', title: 'Ebbe und Flut', eventTime: '2026-03-01T18:02:00Z' }
  const node = await startNode(t, {
    'events.show': async () => ({
      published: null,
      topics: [
        { ...topic, newer },
        { ...topic, newer: null },
      ],
    }),
  })
  const { stdout } = await node.hubctl(['events', 'show', '66'])
  const said = stdout.match(/^Not shown .*$/gm)
  t.same(said?.length, 1)
  t.match(
    said?.[0],
    /^Not shown on radio\/x\/track\/playing: a newer event came before it, 55 "Ebbe und Flut" of 2026-/,
  )
})

t.test('of a published event it is said what is probably wrong with it', async (t) => {
  const warnings = [{ path: '.isrc', message: 'no ISRC', errorCode: 'isrc.form' }]
  const node = await startNode(t, { 'events.show': async () => ({ published: null, report: { warnings } }) })
  const { stdout } = await node.hubctl(['events', 'show', '66'])
  t.match(stdout, /^PATH +WARNING +MESSAGE\n\.isrc +isrc\.form +no ISRC$/m)
})

t.test('of a delivery it is said for which event it waits', async (t) => {
  const deliveries = [
    { queue: 'one', state: 'waiting', behind: '55', attempts: [] },
    { queue: 'two', state: 'delivered', behind: null, attempts: [] },
  ]
  const node = await startNode(t, { 'events.show': async () => ({ published: null, deliveries }) })
  const { stdout } = await node.hubctl(['events', 'show', '66'])
  t.match(stdout, /^one +waiting behind 55 +0 /m)
  t.match(stdout, /^two +delivered +0 /m)
})

t.test('people see moments by their own clock, programs as they are', async (t) => {
  const event = { at: '2026-03-01T18:02:00.250Z', eventTime: '2026-03-01T18:01:00Z', errors: [] }
  const found = { ...event, playlistItemId: '2026-03-01T18:01:00Z', outcome: 'published' }
  async function* tail() {
    yield completed(listedEvent, found)
  }
  const node = await startNode(t, {
    'events.list': async () => ({ events: [found], next: null }),
    'events.tail': async () => tail(),
  })
  const env = { TZ: 'Europe/Berlin' }
  const table = await node.hubctl(['events', 'list', '--livestream', 'l'], { env })
  t.match(
    table.stdout,
    / 2026-03-01T19:02:00\.250\+01:00 .* 2026-03-01T18:01:00Z .* 2026-03-01T19:01:00\+01:00 /,
    'an id is no moment',
  )
  const json = await node.hubctl(['events', 'list', '--livestream', 'l', '--json'], { env })
  t.match(JSON.parse(json.stdout), [event])
  t.match(
    (await node.hubctl(['events', 'tail'], { env })).stdout,
    /^2026-03-01T19:02:00\.250\+01:00 {2}published/,
  )
})

t.test('a trace is printed line by line, and ends well at its last line', async (t) => {
  const at = '2026-03-01T18:02:00.250Z'
  const of = { at, node: 'a:1', connection: 1 }
  async function* lines() {
    yield { at, node: 'a:1', what: 'trace', text: 'until then' }
    yield {
      ...of,
      what: 'in',
      packet: 'PUBLISH',
      packetId: 7,
      topic: 'inbox/\u001b[2J',
      qos: 1,
      retain: true,
      dup: false,
    }
    yield { ...of, what: 'out', packet: 'SUBACK', packetId: 8, returnCodes: [1, 128], bytes: 6 }
    yield { at, node: 'a:1', what: 'left out', leftOut: 3 }
    yield { at, node: 'a:1', what: 'over' }
  }
  let asked: unknown
  const node = await startNode(t, {
    trace: async (args) => {
      asked = args
      return lines()
    },
  })
  const { code, stdout } = await node.hubctl(['trace', 'player-1', '--for', '5m'], { env: { TZ: 'UTC' } })
  t.equal(code, 0)
  t.same(asked, { clientId: 'player-1', for: 300 })
  t.match(stdout, / in PUBLISH {7}id 7 inbox\/\\x1b\[2J QoS 1 retained\n/)
  t.match(stdout, / out SUBACK {7}id 8 code 1 128 of 6 bytes\n/)
  t.match(stdout, /warning: 3 packets of a:1 left out/)
  const json = await node.hubctl(['trace', 'player-1', '--json'])
  t.equal(json.code, 0)
  t.match(JSON.parse(json.stdout.trim().split('\n').at(-1) ?? ''), { what: 'over' })
})

t.test('hostile values cannot play with the terminal', async (t) => {
  const hostile = '\u001b[2J\u001b]0;owned\u0007\r\nroot\u009b31m\u202egnp\u0000\ud800\u2028\u{e0041}'
  const node = await startNode(t, {
    'clients.list': async () => [{ clientId: hostile, username: 'u', address: hostile }],
    status: async () => ({ [hostile]: hostile }),
    'sessions.drop': async () => {
      throw refusal(`there is no session ${hostile}`)
    },
  })
  // Control and format characters that hubctl must never print. Only the line break is allowed.
  const dangerous = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u
  for (const argv of [['clients', 'list'], ['status'], ['sessions', 'drop', 'x']]) {
    for (const json of [[], ['--json']]) {
      const { stdout, stderr } = await node.hubctl([...argv, ...json])
      t.notMatch(stdout + stderr, dangerous, [...argv, ...json].join(' '))
    }
  }
  const text = await node.hubctl(['clients', 'list'])
  t.equal(text.stdout.trimEnd().split('\n').length, 2, 'one row stays one line')
  t.match(
    text.stdout,
    '\\x1b[2J\\x1b]0;owned\\x07\\x0d\\x0aroot\\x9b31m\\u{202e}gnp\\x00\\u{d800}\\u{2028}\\u{e0041}',
  )
  const json = await node.hubctl(['clients', 'list', '--json'])
  t.equal(JSON.parse(json.stdout)[0].clientId, hostile, 'in JSON the value stays the same')
  const refused = await node.hubctl(['sessions', 'drop', 'x'])
  t.equal(refused.stderr.split('\n').length, 2)
})

t.test('check sends the bytes of the file and tells what would happen', async (t) => {
  const errors = [{ path: '.start', message: 'must be a timestamp', errorCode: 'format.openapi.validation' }]
  const warnings = [{ path: '.isrc', message: 'no ISRC', errorCode: 'isrc.form' }]
  const node = await startNode(t, {
    check: async ({ payload }) =>
      Buffer.from(String(payload), 'base64').toString() === '{"good":1}'
        ? { outcome: 'published', services: ['urn:a'], errors: [], warnings }
        : { outcome: 'invalid', services: [], errors },
  })
  const good = join(node.dir, 'good.json')
  await writeFile(good, '{"good":1}')
  const published = await node.hubctl(['check', good, '--institution', A, '--class', 'data'])
  t.equal(published.code, 0)
  t.match(published.stdout, /^outcome +published$/m)
  t.match(published.stdout, /^No errors\.\n\nPATH +WARNING +MESSAGE\n\.isrc +isrc\.form +no ISRC$/m)
  t.match(node.asked.pop()?.args, { institution: A, class: 'data' })

  const invalid = await node.hubctl(['check', '-', '--institution', A], { stdin: '{"bad":1}' })
  t.equal(invalid.code, 1)
  t.match(invalid.stdout, /^outcome +invalid$/m)
  t.match(invalid.stdout, /^\.start +format\.openapi\.validation +must be a timestamp$/m)
  t.equal(invalid.stderr, '')

  const json = await node.hubctl(['check', '-', '--institution', A, '--json'], { stdin: '{"good":1}' })
  t.equal(json.code, 0)
  t.match(JSON.parse(json.stdout), { outcome: 'published' })
})

t.test('a refresh that did not bring a good feed is a failure', async (t) => {
  const node = await startNode(t, { 'feed.refresh': async () => ({ ok: false, problem: 'shrank by 30 %' }) })
  const { code, stdout } = await node.hubctl(['feed', 'refresh'])
  t.equal(code, 1)
  t.match(stdout, /^problem +shrank by 30 %$/m)
})

t.test('output that is not a terminal has no colours', async (t) => {
  const node = await startNode(t, { status: async () => ({ node: 'n1' }) })
  const { stdout } = await node.hubctl(['status'], { env: { FORCE_COLOR: '1', CI: 'true' } })
  t.match(stdout, /^node +n1$/m)
  t.notMatch(stdout, '\u001b')
})

/** An admin socket that records commands in `asked`, and answers by `given`, completed as the schemas have it. */
async function startNode(t: Test, given: Commands = {}) {
  const dir = await shortDir(t)
  const path = join(dir, 'admin.sock')
  const asked: { command: string; args: unknown; who: string }[] = []
  const commands = new Proxy(given, {
    getOwnPropertyDescriptor: () => ({ configurable: true, enumerable: true, value: undefined }),
    get: (target, command: string) => async (args: Record<string, unknown>, who: string) => {
      asked.push({ command, args, who })
      const answer = await target[command]?.(args, who)
      if (isLineByLine(answer)) return answer
      const { result } = Object(operations)[command] ?? {}
      return result ? completed(result, answer) : (answer ?? {})
    },
  })
  const socket = await startAdminSocket({ path, commands, log: pino({ level: 'silent' }) })
  t.teardown(() => socket.close())
  return {
    dir,
    path,
    asked,
    hubctl: (argv: readonly string[], how: Run = {}) => hubctl([...before(path, argv), ...argv], how),
  }
}

/**
 * Returns the option `--socket` with the path, or nothing if the test sets the option. The option goes before the words
 * of the test: after `--`, it would be an argument.
 */
function before(path: string, argv: readonly string[]): string[] {
  return argv.includes('--socket') ? [] : ['--socket', path]
}

/** Runs `act` for each item, at most `width` at a time, because each starts a process. */
async function inTurns<T>(
  width: number,
  items: readonly T[],
  act: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items]
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await act(item)
  }
  await Promise.all(Array.from({ length: width }, worker))
}
