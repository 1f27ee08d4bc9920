import t from 'tap'
import { createInstitutionContacts } from '../../../bridge-https/users/institution-contacts.ts'
import { createMemoryStore } from '../../delivery/memory-store.ts'

/* The contact of an institution (open.md §7): it gets mails only after it has confirmed its address, and until it ends them. */

const [house, other] = ['urn:org:institution:a', 'urn:org:institution:b']
const hours = 3600_000

async function open(memory = createMemoryStore()) {
  let now = Date.parse('2026-01-05T00:00:00Z')
  const contacts = await createInstitutionContacts({ store: memory.store, clock: () => now })
  const noted: string[] = []
  let isFailing = false
  const note = async ({ email, state }: { email: string; state: string }) => {
    if (isFailing) throw new Error('no audit log')
    noted.push(`${email} ${state}`)
  }
  return {
    ...contacts,
    memory,
    noted,
    confirm: (token: string) => contacts.confirm(token, note),
    unsubscribe: (token: string) => contacts.unsubscribe(token, note),
    failNotes: () => {
      isFailing = true
    },
    later: (ms: number) => {
      now += ms
    },
    states: () => contacts.list().map(({ institutionId, email, state }) => [institutionId, email, state]),
  }
}

t.test(
  'nothing is mailed before the address is confirmed, and nothing after its mails were ended',
  async (t) => {
    const { set, confirm, unsubscribe, recipient, confirmed, states, noted } = await open()
    const { token } = await set(house, 'Studio@A.example')
    t.equal(recipient(house), undefined)
    t.same(states(), [[house, 'studio@a.example', 'unconfirmed']])
    t.equal(await confirm(token), true)
    t.equal(await confirm(token), true, 'pressed twice')
    t.same(confirmed(), [house])
    t.equal(recipient(other), undefined)
    const { email, unsubscribe: end = '' } = recipient(house) ?? {}
    t.equal(email, 'studio@a.example')
    t.equal(await unsubscribe(end), true)
    t.equal(await unsubscribe(end), true)
    t.equal(recipient(house), undefined)
    t.equal(await confirm(token), false, 'the old link brings nothing back')
    t.same(
      noted,
      ['studio@a.example confirmed', 'studio@a.example unsubscribed'],
      'each change is noted once',
    )
  },
)

t.test('a link works for 72 hours, and not after another contact was set', async (t) => {
  const { set, confirm, later, states } = await open()
  const { token: first } = await set(house, 'one@a.example')
  const { token: second, expiresAt } = await set(house, 'two@a.example')
  t.equal(expiresAt, '2026-01-08T00:00:00.000Z')
  t.equal(await confirm(first), false)
  later(72 * hours - 1)
  t.equal(await confirm(second), true)
  const { token: third } = await set(house, 'three@a.example')
  later(72 * hours)
  t.equal(await confirm(third), false)
  t.same(states(), [[house, 'three@a.example', 'unconfirmed']])
})

t.test('a wrong token is nobody’s, and takes no lock', async (t) => {
  const { set, confirm, unsubscribe, recipient, memory } = await open()
  const { token } = await set(house, 'a@a.example')
  await confirm(token)
  const { unsubscribe: end = '' } = recipient(house) ?? {}
  memory.judge(() => {
    throw new Error('nothing is written')
  })
  for (const wrong of ['', 'x', token.slice(1), end.slice(0, 8), `${end.slice(0, -1)}_`, `${end}x`]) {
    t.equal(await confirm(wrong), false, wrong)
    t.equal(await unsubscribe(wrong), false, wrong)
  }
})

t.test('what is not noted is not changed; a removed contact is gone; a start knows the others', async (t) => {
  const one = await open()
  const { token } = await one.set(house, 'a@a.example')
  t.notMatch([...one.memory.entries.values()].join(), token, 'stored as a hash')
  one.failNotes()
  await t.rejects(one.confirm(token), { message: 'no audit log' })
  t.same(one.states(), [[house, 'a@a.example', 'unconfirmed']])
  await one.set(other, 'b@b.example')
  t.equal(await one.remove(house), true)
  t.equal(await one.remove(house), false)
  t.same((await open(one.memory)).states(), [[other, 'b@b.example', 'unconfirmed']])
})
