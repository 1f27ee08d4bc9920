import pino from 'pino'
import t from 'tap'
import type { Noticed } from '../../watch/notices.ts'
import { createNotifier } from '../../watch/notifier.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'

/* When contacts of institutions are mailed (open.md §7): once, at most each 15 minutes, six a day. Time is simulated. */

const minutes = 60_000
const hours = 60 * minutes
const monday = Date.parse('2026-01-05T06:00:00Z')
const house = 'urn:org:institution:a'

type Now = Omit<Noticed, 'refusals'>
type Answer = 'sent' | { notTaken: unknown } | Error

/** Nodes on one store. `noticed`: what each of them sees. */
function open(memory = createMemoryStore()) {
  let now = monday
  let noticed: Record<string, Now> = {}
  let contacts = [house]
  let setAt = '2026-01-01T00:00:00.000Z'
  let answer: () => Promise<Answer> | Answer = () => 'sent'
  const mails: string[] = []
  const lines: string[] = []
  const node = (isLeader = true) =>
    createNotifier({
      store: memory.store,
      confirmed: () => contacts,
      recipient: (institutionId) =>
        contacts.includes(institutionId)
          ? {
              email: 'a@a.example',
              unsubscribe: 'u',
              setAt,
              condition: { check: 'institution-contact/a', when: 'absent' },
            }
          : undefined,
      noticed: () => new Map(Object.entries(noticed)),
      async send(institutionId, { silent, loops, refusals }) {
        const parts = [
          ...silent.map(({ livestreamId }) => `${livestreamId} silent`),
          ...loops.map(({ livestreamId }) => `${livestreamId} in a loop`),
          ...refusals.map(({ errorCode, events }) => `${events} ${errorCode}`),
        ]
        const result = await answer()
        if (result instanceof Error) throw result
        if (result === 'sent')
          mails.push(`${institutionId === house ? '' : institutionId} ${parts.join(', ')}`.trim())
        return result
      },
      isLeader: () => isLeader,
      clock: () => now,
      log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) }),
    })
  return {
    node,
    memory,
    mails,
    lines,
    see(of: Partial<Now>, institution = house) {
      noticed = { ...noticed, [institution]: { silent: [], loops: [], ...of } }
    },
    later(ms: number) {
      now += ms
    },
    answerWith(with_: typeof answer) {
      answer = with_
    },
    setAnother() {
      setAt = '2026-01-02T00:00:00.000Z'
    },
    setContacts(all: string[]) {
      contacts = all
    },
  }
}

const silent = (livestreamId: string, since = monday) => ({ livestreamId, since })
const error = (errorCode: string) => ({ errorCode, path: '.', message: 'wrong' })

t.test('a silence is told once; a new one of the same livestream again', async (t) => {
  const { node, see, later, mails } = open()
  const { look } = node()
  see({ silent: [silent('urn:x')] })
  await look()
  later(hours)
  await look()
  t.same(mails, ['urn:x silent'])
  see({})
  await look()
  see({ silent: [silent('urn:x', monday + 2 * hours)] })
  await look()
  t.same(mails, ['urn:x silent', 'urn:x silent'])
})

t.test(
  'another contact is told what the one before knew, no sooner than that one would be mailed',
  async (t) => {
    const { node, see, later, mails, setAnother } = open()
    const { look } = node()
    see({ silent: [silent('urn:x')] })
    await look()
    setAnother()
    await look()
    t.equal(mails.length, 1)
    later(15 * minutes)
    await look()
    await look()
    t.same(mails, ['urn:x silent', 'urn:x silent'])
  },
)

t.test(
  'another node tells no silence again, although it heard the last event some seconds later',
  async (t) => {
    const { node, see, later, mails } = open()
    see({ silent: [silent('urn:x')] })
    await node().look()
    later(hours)
    see({ silent: [silent('urn:x', monday + 20_000)] })
    await node().look()
    t.same(mails, ['urn:x silent'])
  },
)

t.test('one mail in 15 minutes: what comes in between is in the next', async (t) => {
  const { node, see, later, mails } = open()
  const { look, refused } = node()
  see({ silent: [silent('urn:x')] })
  await look()
  see({ silent: [silent('urn:x'), silent('urn:y')], loops: [silent('urn:z')] })
  refused(house, [error('payload.json'), error('payload.json'), error('topic.denied')])
  refused(house, [error('payload.json')])
  later(15 * minutes - 1)
  await look()
  t.equal(mails.length, 1)
  later(1)
  await look()
  t.same(mails.slice(1), ['urn:y silent, urn:z in a loop, 2 payload.json, 1 topic.denied'])
})

t.test('six mails a day', async (t) => {
  const { node, see, later, mails } = open()
  const { look } = node()
  for (let n = 0; n < 20; n++) {
    see({ silent: [silent(`urn:${n}`, monday + n)] })
    await look()
    later(hours)
  }
  t.equal(mails.length, 6)
  later(4 * hours)
  await look()
  t.equal(mails.length, 7)
})

t.test('a loop, and refusals for the same error, are told again after a day', async (t) => {
  const { node, see, later, mails } = open()
  const { look, refused } = node()
  see({ loops: [silent('urn:x')] })
  for (let n = 0; n < 24 * 4; n++) {
    refused(house, [error('payload.json')])
    await look()
    later(15 * minutes)
  }
  t.same(mails, ['urn:x in a loop, 1 payload.json'])
  await look()
  t.same(mails.slice(1), ['urn:x in a loop, 95 payload.json'])
})

t.test('two nodes that both take themselves for the leader mail once', async (t) => {
  const { node, see, mails } = open()
  see({ silent: [silent('urn:x')] })
  await Promise.all([node().look(), node().look(), node(false).look()])
  t.same(mails, ['urn:x silent'])
})

t.test('a crash at any moment mails at most once', async (t) => {
  for (const fate of ['before', 'after'] as const) {
    const one = open()
    one.see({ silent: [silent('urn:x')] })
    let reached = () => {}
    const sending = new Promise<void>((resolve) => {
      reached = resolve
    })
    one.answerWith(async () => {
      if (fate === 'after') one.mails.push('urn:x silent')
      reached()
      return new Promise<Answer>(() => {})
    })
    void one.node().look()
    await sending
    const other = open(one.memory.crashed())
    other.see({ silent: [silent('urn:x')] })
    other.later(hours)
    await other.node().look()
    t.equal(one.mails.length + other.mails.length, fate === 'after' ? 1 : 0, fate)
  }
})

t.test(
  'a mail that was certainly not taken is sent after 15 minutes; one that may have been is not',
  async (t) => {
    const { node, see, later, mails, answerWith, lines } = open()
    const { look, refused } = node()
    see({ silent: [silent('urn:x')] })
    refused(house, [error('payload.json')])
    answerWith(() => ({ notTaken: new Error('550 no such mailbox') }))
    await look()
    answerWith(() => 'sent')
    await look()
    t.same(mails, [])
    later(15 * minutes)
    await look()
    t.same(mails, ['urn:x silent, 1 payload.json'])
    see({ silent: [silent('urn:x'), silent('urn:y')] })
    answerWith(() => new Error('the connection broke'))
    later(hours)
    await look()
    answerWith(() => 'sent')
    later(hours)
    await look()
    t.equal(mails.length, 1)
    const failed = 'contact of an institution not mailed'
    t.same(lines, [failed, 'contact of an institution mailed', failed])
  },
)

t.test('nothing goes out without the commit, nor to a contact that has changed meanwhile', async (t) => {
  const { node, see, memory, mails, later } = open()
  const { look } = node()
  see({ silent: [silent('urn:x')] })
  memory.judge(() => 'refused')
  await look()
  memory.judge(() => 'stored')
  await memory.store.commit([{ put: 'institution-contact/a', value: 'another' }])
  await look()
  t.same(mails, [])
  await memory.store.commit([{ del: 'institution-contact/a' }])
  later(minutes)
  await look()
  t.same(mails, ['urn:x silent'])
})

t.test('what is not the institution’s to mend, or not of one with a contact, is not told', async (t) => {
  const { node, see, mails, setContacts } = open()
  const { look, refused } = node()
  for (const code of ['feed.unavailable', 'topic.created', 'service.failed']) refused(house, [error(code)])
  see({ silent: [silent('urn:x')] }, 'urn:org:institution:b')
  refused('urn:org:institution:b', [error('payload.json')])
  await look()
  t.same(mails, [])
  refused(house, [error('payload.json')])
  setContacts([])
  await look()
  setContacts([house])
  await look()
  t.same(mails, [], 'what came for a contact that is gone is forgotten')
})

t.test('many silent livestreams, over many days: the record stays small', async (t) => {
  const { node, see, memory, later } = open()
  const { look } = node()
  for (let day = 0; day < 4; day++) {
    const all = Array.from({ length: 900 }, (_, n) =>
      silent(`urn:org:permanent-livestream:${day}-${n}`, monday + day),
    )
    see({ silent: all })
    await look()
    later(24 * hours)
  }
  const [record] = memory.keys('institution-told/').map((key) => memory.entries.get(key)?.length)
  t.ok(Number(record) < 100_000, `${record} bytes`)
})
