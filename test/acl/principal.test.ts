import t from 'tap'
import { type Principal, permissionKey } from '../../acl/principal.ts'

const publisher: Principal = {
  role: 'publisher',
  username: 'pub-a-1',
  institutions: ['a', 'b'],
  classes: ['track', 'data'],
}
const subscriber: Principal = { role: 'subscriber', username: 'sub-a-1', filters: ['radio/a', 'radio/b'] }

t.test('the same permissions have the same key', async (t) => {
  t.equal(
    permissionKey(publisher),
    permissionKey({ ...publisher, username: 'pub-a-2' }),
    'whatever the username',
  )
  t.equal(permissionKey(publisher), permissionKey({ ...publisher, institutions: ['b', 'a'] }), 'in any order')
  t.equal(
    permissionKey(publisher),
    permissionKey({ ...publisher, classes: ['data', 'track', 'data'] }),
    'repeated or not',
  )
  t.equal(permissionKey(subscriber), permissionKey({ ...subscriber, filters: ['radio/b', 'radio/a'] }))
})

t.test('other permissions have another key', async (t) => {
  const keys = [
    publisher,
    { ...publisher, institutions: ['a'] },
    { ...publisher, institutions: ['a,b'] },
    { ...publisher, classes: [] },
    { ...publisher, institutions: ['a', 'b', 'track'], classes: ['data' as const] },
    subscriber,
    { ...subscriber, filters: ['radio/a'] },
    { ...subscriber, filters: ['radio/a/radio/b'] },
    { ...subscriber, filters: [] },
    { ...publisher, institutions: [], classes: [] },
  ].map(permissionKey)
  t.equal(new Set(keys).size, keys.length)
})

t.test('the key of today is the key after a restart', async (t) => {
  t.equal(
    permissionKey(subscriber),
    permissionKey({ role: 'subscriber', username: 'x', filters: ['radio/a', 'radio/b'] }),
  )
  t.match(permissionKey(subscriber), /^[A-Za-z0-9_-]{43}$/)
})
