import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import t from 'tap'
import { call } from '../../cli/connection.ts'
import type { Operation } from '../../operations/operation.ts'
import { operationNames, operations } from '../../operations/operations.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import { type Family, families } from '../../store/keys.ts'
import { problemOf } from '../../store/records.ts'
import type { Change } from '../../store/store.ts'
import { projectFile } from '../root.ts'
import { startTestHub, temporaryDirectory } from '../start-hub.ts'
import { bytesOf, damaged, samples } from './record-samples.ts'

t.test('each family of records has a sample, and its row takes it', async (t) => {
  const untaken = [...families].filter(([word, { isOfNodes }]) => {
    return !isOfNodes && !samples.some(({ key }) => key.startsWith(word))
  })
  t.same(untaken, [])
  for (const sample of samples)
    t.equal(problemOf({ key: sample.key, value: bytesOf(sample) }), undefined, sample.key)
})

t.test('a refusal names the key, its family, the field and what is expected', async (t) => {
  const problem = (key: string, value: string) => problemOf({ key, value: Buffer.from(value) })
  t.equal(
    problem('user/x', '{"userId":"x","email":5}'),
    'the record "user/x" of "user/" cannot be read, expected a JSON object whose "email" is a text',
  )
  t.equal(
    problem('every/s/0000000000000001', '{"qos":3}'),
    'the record "every/s/0000000000000001" of "every/" cannot be read, expected a JSON object whose "qos" is 0 or 1 or 2',
  )
  t.match(
    problem('retained/x', ''),
    /"retained\/x" of "retained\/" cannot be read, expected a key that has a topic, a line break and a slot/,
  )
  t.match(problem('user/%', '{}'), /expected a key that has a name behind user\/, percent-encoded/)
  t.equal(problem('constructor', ''), undefined, 'no node reads what is of no family')
  t.equal(problem('__proto__/x', ''), undefined)
})

t.test('a name in the key and in the value is one', async (t) => {
  const elsewhere: Record<string, string> = {
    'credential/sub-x': 'credential/sub-y',
    'user/u': 'user/v',
    'signing-key/k': 'signing-key/l',
    'subscription/de.org.hub.subscription.x': 'subscription/y',
    'session/car': 'session/bus',
    'lifecycle/push': 'lifecycle/pull',
    'work/plugins.x/0000000000000005': 'work/plugins.x/0000000000000006',
    'work-dead/plugins.x/0000000000000005': 'work-dead/plugins.x/0000000000000006',
    [samples.find(({ key }) => key.startsWith('topic/'))?.key ?? '']: 'topic/y',
  }
  for (const [from, key] of Object.entries(elsewhere)) {
    const sample = samples.find((one) => one.key === from)
    if (!sample) throw new Error(`there is no sample ${from}`)
    const problem = problemOf({ key, value: bytesOf(sample) })
    t.match(problem, /expected a JSON object whose "\w+" is that of the key$/, key)
    t.match(problem, JSON.stringify(key))
  }
})

t.test('each record that 3.0.0-beta.2 has stored is taken', async (t) => {
  // One of each form that its nodes wrote while its tests ran. A store and an export of that release stay good.
  const lines = readFileSync(projectFile('test/store/beta-2.jsonl'), 'utf8').trimEnd().split('\n')
  for (const line of lines) {
    const [key, value] = JSON.parse(line)
    t.equal(problemOf({ key, value: Buffer.from(value) }), undefined, key)
  }
})

t.test('a time and a link are what headers and pages can show', async (t) => {
  const lifecycle = Object(samples.find(({ key }) => key === 'lifecycle/push')?.json)
  const problem = (fields: object) =>
    problemOf({ key: 'lifecycle/push', value: Buffer.from(JSON.stringify({ ...lifecycle, ...fields })) })
  for (const link of ['javascript:alert(1)', 'https://x.example/\r\nx: y', 'https://x/>; rel="x"', ''])
    t.match(problem({ link }), /whose "link" is null or an http or https URL/, link)
  t.equal(problem({ link: 'https://x.example/a?b=c&d#e' }), undefined)
  t.match(problem({ sunset: 'soon' }), /whose "sunset" is null or a time of ISO 8601/)
  const user = Object(samples.find(({ key }) => key === 'credential/sub-x')?.json)
  const value = Buffer.from(JSON.stringify({ ...user, revokeAt: 'never' }))
  t.match(problemOf({ key: 'credential/sub-x', value }), /whose "revokeAt" is a time/)
})

t.test('a value that is nested too deep to be written again is refused', async (t) => {
  const user = samples.find(({ key }) => key === 'user/u')?.json
  const withMore = (more: string) => Buffer.from(JSON.stringify(user).replace(/}$/, `,"more":${more}}`))
  const problem = (more: string) => problemOf({ key: 'user/u', value: withMore(more) })
  t.equal(problem('['.repeat(99) + ']'.repeat(99)), undefined)
  t.match(problem('['.repeat(100) + ']'.repeat(100)), /expected JSON that is nested at most 100 deep/)
  t.match(problem(`${'{"x":'.repeat(20_000)}1${'}'.repeat(20_000)}`), /nested at most 100 deep/)
  t.equal(problem(JSON.stringify('["\\{'.repeat(1_000))), undefined, 'brackets in a text are none')
  t.equal(problem(`[${'[],'.repeat(1_000)}[]]`), undefined, 'brackets beside each other are not deep')
})

/** Records that an import takes, each under a key of its own, until the most that one start can read. */
function* takenDamage(): Generator<{ change: Change; what: string }> {
  const singles = new Map<string, number>()
  for (const sample of samples) {
    if (['number', 'format'].includes(sample.key)) continue
    for (const { what, value } of damaged(sample)) {
      const nth = (singles.get(sample.key) ?? 0) + 1
      singles.set(sample.key, nth)
      const key = keyOfNth(sample.key, nth)
      const named = withName(value, sample.key, key)
      if (problemOf({ key, value: named }) === undefined)
        yield { change: { put: key, value: named }, what: `${key} ${what}` }
    }
  }
}

/** Another key of the same form. */
function keyOfNth(key: string, nth: number): string {
  if (/^(time|trimming|clock-behind)/.test(key)) return key
  if (/\d{16}$/.test(key)) return key.replace(/\d{16}$/, String(nth + 10).padStart(16, '0'))
  return key.startsWith('retained/') ? key.replace('\n', `${nth}\n`) : `${key.slice(0, -1)}${nth}`
}

/** The value of a record under another key: a field that is in the key as well comes along. */
function withName(value: Buffer, before: string, key: string): Buffer {
  const [from = '', to = ''] = [before, key].map((each) => each.slice(each.lastIndexOf('/') + 1))
  const text = value.toString('latin1')
  return Buffer.from(
    /^\d{16}$/.test(from)
      ? text.replace(`"sequence":${Number(from)},`, `"sequence":${Number(to)},`)
      : text.replace(`:${JSON.stringify(from)}`, `:${JSON.stringify(to)}`),
    'latin1',
  )
}

t.test('no record that an import takes stops a start', { timeout: 120_000 }, async (t) => {
  const home = await temporaryDirectory(t)
  const store = await openEmbeddedStore(join(home, 'data', 'store'))
  const changes = [
    ...samples.map((sample) => ({ put: sample.key, value: bytesOf(sample) })),
    ...[...takenDamage()].map(({ change }) => change),
  ]
  await store.commit(changes)
  await store.close()
  t.ok(changes.length > 200, `${changes.length} records`)
  const ranges = t.capture(ClassicLevel.prototype, 'iterator', ClassicLevel.prototype.iterator)
  const gets = t.capture(ClassicLevel.prototype, 'get', ClassicLevel.prototype.get)
  const hub = await startTestHub(t, {}, home)
  t.ok(hub.httpsPort)
  const wholeRanges = ranges().flatMap(({ args: [range] }) => (range?.limit === -1 ? [range.gte] : []))
  const read = new Set([...wholeRanges, ...gets().map(({ args: [key] }) => key)])
  // A node without Redis has no others, and its audit log in a file.
  const rows = [...families.values()].filter(({ isOfNodes, prefix }) => !isOfNodes && prefix !== 'audit/')
  const isRead = ({ prefix, path }: Family) => read.has(prefix) || read.has(path)
  t.strictSame(
    Object.fromEntries(rows.map((row) => [row.prefix, isRead(row)])),
    Object.fromEntries(rows.map((row) => [row.prefix, row.isReadAtStart])),
    'it reads what the rows say',
  )

  // The damaged records are in the answers to operators, so that none of them may break an answer.
  const about = [
    {},
    { clientId: 'car' },
    { name: 'de.org.hub.subscription.x' },
    { name: 'plugins.x' },
    { queue: 'plugins.x' },
    { username: 'sub-x' },
    { email: 'a@b.example' },
    { topic: 'radio/#' },
    { filter: 'radio/#' },
  ]
  for (const name of operationNames) {
    const { effect, singleAnswerArgs }: Operation = operations[name]
    if (effect !== 'none') continue
    for (const args of about) {
      const answer = await call(hub.adminSocket, name, { ...args, ...singleAnswerArgs }, 'tester')
      t.notMatch(answer, { error: { code: 'internal' } }, `${name} ${JSON.stringify(args)}`)
    }
  }
})

t.test(
  'a message that was not released has its header, and no time is beyond what can be shown',
  async (t) => {
    const problem = (key: string, value: string) => problemOf({ key, value: Buffer.from(value) })
    t.equal(problem('outgoing/car/0000000000000001/released', ''), undefined)
    t.match(problem('outgoing/car/0000000000000001', ''), /expected a JSON object, a line break and bytes/)
    const entry = (at: string) =>
      problem('journal/0000000000000001', `{"topic":"t","qos":1,"queue":{"keep":"every"},"at":${at}}\n`)
    t.equal(entry('1e15'), undefined)
    t.match(entry('9e15'), /whose "at" is a time in milliseconds/)
    t.match(entry('1e999'), /whose "at" is a time in milliseconds/)
  },
)
