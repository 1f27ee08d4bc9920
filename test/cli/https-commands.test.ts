import t from 'tap'
import type { CommandOf, Input } from '../../cli/command.ts'
import { httpsCommands } from '../../cli/https-commands.ts'
import { createPrinter } from '../../cli/print.ts'
import { type OperationName, operations } from '../../operations/operations.ts'

/** What `hubctl` sends for a typed command. Throws on a usage error. */
async function sent(words: string, given: Record<string, string | readonly string[] | boolean> = {}) {
  const input: Input = {
    text: (name) => String(given[name] ?? ''),
    optional: (name) => (given[name] === undefined ? undefined : String(given[name])),
    texts: (name) => [given[name] ?? []].flat().map(String),
    flag: (name) => given[name] === true,
  }
  return httpsCommands.find((command) => command.words === words)?.args?.(input)
}

const institution = 'urn:org:institution:a'

t.test('commands are sent as they were typed', async (t) => {
  t.same(await sent('users add', { email: 'a@b', institution, permission: ['publish', 'operate'] }), {
    email: 'a@b',
    institution,
    permissions: ['publish', 'operate'],
  })
  t.same(await sent('users remove', { email: 'a@b' }), { email: 'a@b' })
  t.same(await sent('keys rotate'), { dropOld: false })
  t.same(await sent('keys rotate', { dropOld: true }), { dropOld: true })
  const announcement = { track: 'push', sunset: '2027-12-31', link: 'https://hub.example/' }
  t.same(await sent('lifecycle announce', announcement), announcement)
  t.same(await sent('lifecycle retire', { track: 'publish' }), { track: 'publish' })
})

t.test('what is typed wrong is not sent', async (t) => {
  const announcement = { track: 'push', sunset: '2027-12-31', link: 'https://hub.example/' }
  for (const [words, given, message] of [
    ['users add', { email: 'a', institution }, /email must be/],
    ['users add', { email: 'a@b', institution: 'a' }, /institution must be/],
    ['users add', { email: 'a@b', institution, permission: ['all'] }, /permission must be one of publish/],
    ['users remove', { email: 'a' }, /email must be/],
    ['users reset-password', { email: '' }, /email must be/],
    ['lifecycle announce', { ...announcement, track: 'all' }, /track must be one of push, publish/],
    ['lifecycle announce', { ...announcement, sunset: '31.12.2027' }, /sunset must be a date/],
    ['lifecycle announce', { ...announcement, sunset: '2027-02-29' }, /sunset must be a date/],
    ['lifecycle announce', { ...announcement, link: 'x' }, /link must be/],
    ['lifecycle retire', { track: '' }, /track must be/],
  ] as const) {
    await t.rejects(sent(words, given), { name: 'Usage', message }, `${words} ${JSON.stringify(given)}`)
  }
})

t.test('a rotation says from when the key signs, or which receivers may refuse it', async (t) => {
  const printer = createPrinter({ isTTY: false })
  const rotate = commandOf('keys.rotate')
  const signsFrom = '2026-03-01T12:10:00.000Z'
  const key = { createdAt: signsFrom, signsFrom, replacedAt: null, state: 'waiting' as const }
  const waiting = { ...key, kid: 'k1', dropOld: false, mayRefuse: [] }
  t.match(rotate?.print(waiting, printer), /it signs from 2026-03-01T\S+ on: k1\.$/)
  t.equal(rotate?.warning?.(waiting), undefined)
  const receiver = { name: 'sub-1', target: 'https://hook.example/', contact: 'a@b.example' }
  const atOnce = { ...key, kid: 'k2', dropOld: true, mayRefuse: [receiver] }
  const text = rotate?.print(atOnce, printer)
  t.match(text, /^Signing from now on with k2\.$/m)
  t.match(text, /^sub-1 +https:\/\/hook\.example\/ +a@b\.example$/m)
  t.match(rotate?.warning?.(atOnce), /may refuse .* 204 .*hubctl queues replay/)
})

t.test('the life cycle is two tables: where the tracks stand, and who asks', async (t) => {
  const printer = createPrinter({ isTTY: false })
  const status = commandOf('lifecycle.status')
  const [unannounced] = operations['lifecycle.status'].resultExample
  if (!unannounced) throw new Error('no example')
  const tracks = [
    {
      ...unannounced,
      track: 'push' as const,
      state: 'live' as const,
      requests: 3,
      traffic: [{ day: '2026-03-01', route: 'GET /topics', requests: 3 }],
    },
    { ...unannounced, track: 'publish' as const, state: 'gone' as const, requests: 0, traffic: [] },
  ]
  const text = status?.print(tracks, printer) ?? ''
  t.match(text, /^push +live .* 3$/m)
  t.match(text, /^2026-03-01 +GET \/topics +3$/m)
})

function commandOf<Name extends OperationName>(name: Name) {
  return httpsCommands.find(({ operation }) => operation === name) as CommandOf<Name> | undefined
}
