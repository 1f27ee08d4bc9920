import ipaddr from 'ipaddr.js'
import t, { type Test } from 'tap'
import { type Ban, type BanKind, createBanned, createBans } from '../../listener/bans.ts'
import { openStore } from '../open-store.ts'

const clock = () => Date.parse('2026-03-01T12:00:00Z')

t.test('an address is read once, however many bans there are', async (t) => {
  const bans = await open(t)
  for (let host = 1; host <= 50; host++) await bans.add(ban('address', `192.0.2.${host}`), stored)
  const read = t.capture(ipaddr, 'isValid', ipaddr.isValid)
  t.equal(bans.hasAddress('192.0.2.50'), true)
  t.equal(bans.hasAddress('::ffff:192.0.2.50'), true)
  t.equal(bans.hasAddress('192.0.2.51'), false)
  t.equal(read().length, 3)
})

t.test('who closes connections hears of each ban that begins, and of no other', async (t) => {
  const bans = await open(t)
  const begun: Ban[] = []
  bans.onBanned((one) => void begun.push(one))
  const first = ban('user', 'sub-1')
  const second = ban('address', '192.0.2.0/24')
  await bans.add(first, stored)
  await bans.add(second, stored)
  await bans.remove('sub-1', stored)
  t.strictSame(begun, [first, second])
  t.strictSame(
    begun.map((one) => createBanned(one)('192.0.2.7')),
    [false, true],
  )
})

function ban(kind: BanKind, value: string): Ban {
  return { kind, value, reason: 'r', since: '2026-03-01T12:00:00Z', until: '2026-03-01T13:00:00Z' }
}

async function stored(): Promise<void> {}

async function open(t: Test) {
  const store = await openStore(t)
  return createBans({ store, clock })
}
