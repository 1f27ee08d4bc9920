import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { commands } from '../../../cli/commands.ts'
import { argumentsOf } from '../../../cli/typed/arguments.ts'
import { operations } from '../../../operations/operations.ts'
import { sent } from '../sent.ts'

const file = join(t.testdir(), 'event.json')

for (const { words, operation } of commands) {
  const row = operations[operation]
  const [example = {}] = Object(row.args).examples
  t.test(`hubctl ${words} sends the arguments of its example as they were typed`, async (t) => {
    const typed = argumentsOf(row).filter(({ argument }) => argument in example)
    const argv: string[] = []
    for (const { argument, flags } of typed) argv.push(...(await typedAs(flags, example[argument])))
    const args = Object.fromEntries(typed.map(({ argument }) => [argument, example[argument]]))
    t.same(await sent([...words.split(' '), ...argv]), { operation, args })
  })
}

/** What a person types for an argument. */
async function typedAs(flags: string, value: unknown): Promise<string[]> {
  const [option = ''] = flags.split(' ')
  if (value === true) return [option]
  if (Array.isArray(value)) return value.flatMap((one) => [option, String(one)])
  const text = flags.includes('<duration>') ? `${value}s` : String(value)
  if (flags !== '<file>') return option.startsWith('--') ? [option, text] : [text]
  await writeFile(file, Buffer.from(text, 'base64'))
  return [file]
}

t.test('values are typed as people say them', async (t) => {
  const rotate = (...argv: string[]) => sent(['credentials', 'rotate', ...argv])
  for (const argv of [
    ['pub-a-1', '--revoke-after', '24h'],
    ['--revoke-after', '1d', 'pub-a-1'],
    ['pub-a-1', '--revoke-after=1440m'],
    ['pub-a-1', '--revoke-after', '86400s'],
  ]) {
    t.match(await rotate(...argv), { args: { username: 'pub-a-1', revokeAfter: 86_400 } }, argv.join(' '))
  }
  t.same(Object(await sent(['clients', 'disconnect', '--', '--json'])).args, { clientId: '--json' })
  t.same(Object(await sent(['feed', 'refresh'])).args, {})
  t.same(Object(await sent(['feed', 'refresh', '--force'])).args, { force: true })
  t.same(Object(await sent(['sessions', 'list', '--connected'])).args, { connected: true })
  t.same(Object(await sent(['retained', 'list'])).args, {})
  t.same(Object(await sent(['retained', 'list', 'radio/#'])).args, { filter: 'radio/#' })
  t.same(Object(await sent(['lifecycle', 'brownout', 'push', '--end'])).args, { track: 'push', for: 0 })
  t.same(Object(await sent(['queues', 'replay', 'one', '7'])).args, { name: 'one', messageId: '7' })
  t.same(
    Object(await sent(['events', 'list', '--since', '2026-03-01T18:02Z', '--before', '9', '--limit', '7']))
      .args,
    { since: '2026-03-01T18:02Z', before: 9, limit: 7 },
  )
  const several = ['--institution', 'urn:org:institution:a', '--institution', 'urn:org:institution:b']
  t.same(Object(await sent(['credentials', 'add', '--role', 'publisher', '--label', 'x', ...several])).args, {
    role: 'publisher',
    label: 'x',
    institutions: ['urn:org:institution:a', 'urn:org:institution:b'],
  })
})

const A = 'urn:org:institution:a'
const addPublisher = ['credentials', 'add', '--role', 'publisher', '--label', 'swr3', '--institution', A]
const addSubscriber = ['credentials', 'add', '--role', 'subscriber', '--label', 'player']

t.test('what is typed wrong is not sent', async (t) => {
  const announce = (track: string, sunset: string, link: string) => [
    'lifecycle',
    'announce',
    track,
    '--sunset',
    sunset,
    '--link',
    link,
  ]
  const addUser = (email: string, ...more: string[]) => [
    'users',
    'add',
    '--email',
    email,
    '--institution',
    ...more,
  ]
  await writeFile(file, '{}')
  const wrong: (readonly [argv: string[], message: RegExp])[] = [
    [['events', 'list', '--livestream', 'l', '--institution', A], /cannot be given together/],
    [['events', 'list', '--institution', 'a'], /institution URN/],
    [
      ['events', 'list', '--livestream', 'l', '--since', '1802'],
      /--since "1802" is no time: expected one such as/,
    ],
    [['queues', 'replay', 'q', '--since', '2999-01-01'], /--since "2999-01-01" has not come yet/],
    [['events', 'list', '--livestream', 'l', '--before', '-1'], /--before|unknown option/],
    [['events', 'list', '--livestream', 'l', '--limit', '1001'], /whole number from 1 to 1000/],
    [['events', 'tail', '--outcome', 'good'], /outcome must be one of published, .*, not "good"/],
    [['events', 'show'], /missing required argument/],
    [['credentials', 'nonsense'], /unknown command/],
    [['status', 'too', 'much'], /too many arguments/],
    [['status', '--nonsense'], /unknown option '--nonsense'/],
    [['credentials', 'add', '--label', 'x'], /--role/],
    [['credentials', 'add', '--role', 'publisher', '--institution', A], /--label/],
    [
      ['credentials', 'add', '--role', 'admin', '--label', 'x'],
      /role must be one of publisher, subscriber, reader, not "admin"/,
    ],
    [['credentials', 'add', '--role', 'publisher', '--label', 'x'], /institution is required/],
    [['credentials', 'add', '--role', 'publisher', '--label', 'SWR 3', '--institution', A], /label must/],
    [
      ['credentials', 'add', '--role', 'publisher', '--label', 'x', '--institution', 'swr'],
      /institution URN/,
    ],
    [[...addPublisher, '--class', 'news'], /class must be one of/],
    [[...addPublisher, '--allow', 'radio/#'], /allow is for subscribers/],
    [addSubscriber, /allow is required/],
    [[...addSubscriber, '--allow', '#'], /within radio\/#/],
    [[...addSubscriber, '--allow', 'radio/#/x'], /topic filter/],
    [[...addSubscriber, '--allow', 'radio/#', '--institution', A], /institution is for publishers/],
    [['credentials', 'rotate', 'x', '--revoke-after', '0s'], /duration/],
    [['credentials', 'rotate', 'x', '--revoke-after', '24'], /duration/],
    [['credentials', 'rotate', 'x', '--revoke-after', '-1h'], /duration/],
    [['credentials', 'rotate', 'x', '--revoke-after', '99999d'], /duration/],
    [['subscriptions', 'show'], /missing required argument 'name'/],
    [['subscriptions', 'list', '--institution', 'x'], /institution must be an institution URN/],
    [['subscriptions', 'list', '--livestream', A], /livestream must be a livestream URN/],
    [['subscriptions', 'list', '--state', 'asleep'], /state must be one of idle, /],
    [['queues', 'list', '--state', 'asleep'], /state must be one of idle, .*, not "asleep"/],
    [['audit', '--action', 'credentials'], /action must be one of credentials\.add, .*, not "credentials"/],
    [
      ['credentials', 'list', '--role', 'king'],
      /role must be one of publisher, subscriber, reader, not "king"/,
    ],
    [['sessions', 'drop', ''], /clientId must be a client id, not ""/],
    [['subscriptions', 'list', '--limit', 'all'], /limit must be a whole number from 1, not "all"/],
    [['retained', 'list', 'radio/#/x'], /not a topic filter/],
    [['retained', 'clear'], /missing required argument/],
    [['retained', 'clear', 'radio/#'], /not a topic/],
    [['check', file], /--institution/],
    [['check', file, '--institution', 'x'], /institution URN/],
    [['check', file, '--institution', A, '--class', 'x'], /class must be one of/],
    [addUser('a', A), /^email must be/],
    [addUser('a@b', 'a'), /^institution must be/],
    [addUser('a@b', A, '--permission', 'all'), /^permission must be one of publish/],
    [['users', 'remove', 'a'], /^email must be/],
    [['users', 'reset-password', ''], /^email must be/],
    [announce('all', '2027-12-31', 'https://hub.example/'), /^track must be one of push, publish/],
    [announce('push', '31.12.2027', 'https://hub.example/'), /^sunset must be a date/],
    [announce('push', '2027-02-29', 'https://hub.example/'), /^sunset must be a date/],
    [announce('push', '2027-12-31', 'x'), /^link must be/],
    [['lifecycle', 'retire', ''], /^track must be/],
  ]
  for (const [argv, message] of wrong) {
    await t.rejects(
      sent(argv),
      { name: /^(Usage|CommanderError[0-9]?)$/, message },
      argv.join(' ').slice(0, 80),
    )
  }
})
