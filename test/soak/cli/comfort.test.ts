import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { runHubctl } from '../../cli/run-hubctl.ts'
import { shortDir } from '../../cli/short-dir.ts'
import { connect } from '../../clients.ts'
import { institutions } from '../../events.ts'
import { hubctlCommand } from '../../root.ts'
import { startTestHub } from '../../start-hub.ts'
import { openStoreOf } from '../../stores.ts'

const run = promisify(execFile)
const [own = ''] = institutions

t.test('what is typed can be completed', async (t) => {
  const { stdout: script } = await runHubctl(['completion', 'bash'])
  const complete = async (...words: string[]) => {
    const typed = words.map((word) => `'${word}'`).join(' ')
    const ask = `COMP_WORDS=(hubctl ${typed}); COMP_CWORD=${words.length}; _hubctl; echo "\${COMPREPLY[*]}"`
    return (await run('bash', ['-c', `${script}\n${ask}`])).stdout.trim().split(' ')
  }
  t.same(await complete('cred'), ['credentials'])
  t.same((await complete('credentials', 'r')).sort(), ['revoke', 'rotate'])
  t.same(await complete('credentials', 'add', '--ro'), ['--role'])
  t.same(
    await complete('--url', 'https://hub.example', 'queues', 'd'),
    ['dead-letters'],
    'an option has a value',
  )
  t.same(await complete('queues', 'replay', 'x', '--si'), ['--since'], 'behind an argument')
  t.same(await complete('completion', 'z'), ['zsh'])
  t.same(await complete('import', 'f', '--dry'), ['--dry-run'], 'behind an argument of one word')
  t.same(await complete('credentials', 'f', '--ro'), [''], 'a group has no arguments')
  const url = ['https', ':', '//hub.example', ':', '8443'] // as bash splits it
  t.same(await complete('--url', ...url, 'queues', 'd'), ['dead-letters'])
  t.same(await complete('--url', '=', ...url, 'queues', 'd'), ['dead-letters'])
  t.same(await complete('clients', 'disconnect', 'a', ':', 'b', '--ye'), ['--yes'])
  t.match((await runHubctl(['completion', 'zsh'])).stdout, /^#compdef hubctl\n/)
  t.match(
    (await runHubctl(['completion', 'fish'])).stdout,
    /^complete -c hubctl .*-a 'add list show rotate revoke'$/m,
  )
  t.match((await runHubctl(['completion', 'fish'])).stdout, /"import \*"' -a '--stopped /)
  t.match(await runHubctl(['completion', 'tcsh']), { code: 2, stderr: /"tcsh": bash, zsh or fish/ })
})

t.test('with --watch the answer comes again and again', async (t) => {
  const hub = await startTestHub(t)
  const [program = '', ...entry] = hubctlCommand
  const argv = ['credentials', 'list', '--watch', '--json', '--socket', hub.adminSocket]
  const watching = spawn(program, [...entry, ...argv])
  t.teardown(() => watching.kill())
  const lines = createInterface({ input: watching.stdout })[Symbol.asyncIterator]()
  t.same(JSON.parse((await lines.next()).value), [])
  const { username } = await hub.publisher([own])
  let last: unknown[] = []
  while (last.length === 0) last = JSON.parse((await lines.next()).value)
  t.match(last, [{ username }])
  const wrong = await runHubctl(['credentials', 'revoke', username, '--watch', '--socket', hub.adminSocket])
  t.match(wrong, { code: 2, stderr: /--watch is for what only reads/ })
  watching.kill()
  await once(watching, 'close')
})

t.test(
  'with --watch --json a failure is one line, and the watch goes on if it was answered before',
  async (t) => {
    const answers = [
      { error: { code: 'node.unreachable', message: 'a proxy answers' } },
      { result: [] },
      { error: { code: 'refused', message: 'the store does not answer' } },
      { result: [{ username: 'sub-1' }] },
    ]
    let asked = 0
    const node = createServer((_, response) =>
      response.end(JSON.stringify(answers[asked++ % answers.length])),
    )
    const socketPath = join(await shortDir(t), 'admin.sock')
    await once(node.listen(socketPath), 'listening')
    t.teardown(() => node.close())
    const [program = '', ...entry] = hubctlCommand
    const argv = ['credentials', 'list', '--watch', '--json', '--socket', socketPath]
    const watching = spawn(program, [...entry, ...argv])
    t.teardown(() => watching.kill())
    const lines = createInterface({ input: watching.stdout })[Symbol.asyncIterator]()
    for (const answer of answers) {
      const printed = JSON.parse((await lines.next()).value)
      t.same(printed, 'error' in answer ? answer : answer.result)
    }
    watching.kill()
    await once(watching, 'close')
  },
)

t.test('a change without a whole answer may have been made, and hubctl says so', async (t) => {
  for (const part of ['', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"result":']) {
    const node = createServer(
      (request) =>
        void request.resume().on('end', () => request.socket.end(part, () => request.socket.destroy())),
    )
    const socketPath = join(await shortDir(t), 'admin.sock')
    await once(node.listen(socketPath), 'listening')
    t.teardown(() => node.close())
    const revoked = await runHubctl(['credentials', 'revoke', 'x', '--socket', socketPath])
    t.match(revoked, {
      code: 1,
      stderr: /the request was sent, but there is no answer: .*hubctl audit shows whether/,
    })
  }
})

t.test('the status is short, with units; the counters come when they are asked for', async (t) => {
  const hub = await startTestHub(t)
  const socket = ['--socket', hub.adminSocket]
  const short = (await runHubctl(['status', ...socket])).stdout
  t.match(short, /^memory\.rss +\d+ MiB$/m)
  t.match(short, /^uptime +\d+[ms]/m)
  t.match(short, /^certificate\.expiryDays +\d+ days$/m)
  t.notMatch(short, /^counters/m)
  t.match((await runHubctl(['status', '--counters', ...socket])).stdout, /^counters\./m)
  const status = JSON.parse((await runHubctl(['status', '--json', ...socket])).stdout)
  t.match(status, { counters: {}, memory: { rss: Number } })
  const { counters, certificate } = status
  t.equal(counters.hub_certificate_expiry_days, certificate.expiryDays, 'whole days')
})

t.test('a credential says when it was used last', async (t) => {
  const hub = await startTestHub(t)
  const { username, password } = await hub.subscriber('radio/#')
  const lastUse = async (from: Pick<typeof hub, 'ask'>) => {
    const [row] = await from.ask<{ lastUsedAt: string | null }[]>('credentials.list')
    return row?.lastUsedAt
  }
  t.equal(await lastUse(hub), null)
  await t.rejects(connect(t, hub, { username, password: 'wrong' }))
  t.equal(await lastUse(hub), null, 'a failed log-in is no use')
  const before = Date.now()
  await connect(t, hub, { username, password })
  const used = await lastUse(hub)
  t.ok(Date.parse(String(used)) >= before)
  await hub.close()
  t.equal(await lastUse(await startTestHub(t, {}, hub.home)), used, 'over restarts')
})

t.test('a credential of a page too, and its use is forgotten with it', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const { json } = await api.call('POST', '/auth/mqtt', { token })
  const [username, password] = [String(json.username), String(json.password)]
  await connect(t, hub, { username, password }, { clientId: 'page-1' })
  await hub.close()
  const again = await startTestHub(t, {}, hub.home)
  const [row] = await again.ask<{ lastUsedAt: string }[]>('credentials.list')
  t.match(row, { username, lastUsedAt: String })
  await again.ask('credentials.revoke', { username })
  await again.close()
  const store = await openStoreOf({}, join(hub.home, 'data'))
  t.teardown(() => store.close())
  const kept: string[] = []
  for await (const [key] of store.range('credential-use/')) kept.push(key)
  t.same(kept, [])
})

t.test('lists are filtered, and as short as one likes', async (t) => {
  const hub = await startTestHub(t)
  const socket = ['--socket', hub.adminSocket]
  const list = async (...argv: string[]) =>
    JSON.parse((await runHubctl([...argv, '--json', ...socket])).stdout)
  const publisher = await hub.publisher([own])
  const subscriber = await hub.subscriber('radio/#')
  const { client } = await connect(t, hub, subscriber, { clientId: 'player', clean: false })
  t.match(await list('credentials', 'list', '--role', 'publisher'), [{ username: publisher.username }])
  t.match(await list('credentials', 'list', '--institution', own), [{ username: publisher.username }])
  t.equal((await list('credentials', 'list', '--limit', '1')).length, 1)
  t.match(await list('clients', 'list', '--username', subscriber.username), [{ clientId: 'player' }])
  t.same(await list('clients', 'list', '--username', publisher.username), [])
  await client.endAsync()
  await hub.until(async () => (await hub.ask<object[]>('clients.list')).length === 0)
  t.equal((await list('sessions', 'list', '--username', subscriber.username)).length, 1)
  t.same(await list('sessions', 'list', '--connected'), [])
  t.match(await list('audit', '--action', 'credentials.add', '--limit', '1'), [
    { target: subscriber.username },
  ])
  t.match(await runHubctl(['credentials', 'list', '--limit', '0', ...socket]), {
    code: 2,
    stderr: /whole number from 1, not 0/,
  })
  t.match(await runHubctl(['credentials', 'list', '--role', 'king', ...socket]), {
    code: 2,
    stderr: /role must be one of publisher, subscriber, reader, not "king"/,
  })
  t.match(await runHubctl(['lifecycle', 'brownout', 'push', '--for', 'soon', ...socket]), {
    code: 2,
    stderr: /at most 24h, not "soon"/,
  })
  t.match(await runHubctl(['lifecycle', 'brownout', 'push', ...socket]), {
    code: 2,
    stderr: /--for or --end/,
  })
  t.match(await runHubctl(['lifecycle', 'brownout', 'push', '--for', '10m', ...socket]), {
    code: 1,
    stderr: /announced first/,
  })
})
