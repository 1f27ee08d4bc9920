import { jwtVerify, SignJWT } from 'jose'
import t from 'tap'
import { createSigningKeys } from '../../certs/signing-keys.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import type { Store } from '../../store/store.ts'

t.test('what is signed at any moment of a rotation can be verified', async (t) => {
  const embedded = await openEmbeddedStore(t.testdir())
  t.teardown(() => embedded.close())
  const used: ReturnType<typeof keys.current>[] = []
  const look = () => {
    const now = keys.current()
    if (used.every(({ kid, key }) => kid !== now.kid || key !== now.key)) used.push(now)
  }
  let isRotating = false
  const store: Store = {
    ...embedded,
    async commit(changes) {
      const first = await embedded.commit(changes)
      if (isRotating) void lookAround()
      return first
    },
  }
  // Stands for code that runs between two steps of the rotation.
  async function lookAround(): Promise<void> {
    for (let turn = 0; turn < 1000; turn++) {
      look()
      await null
    }
  }
  const keys = await createSigningKeys({ store, clock: Date.now, keepMs: 60_000 })
  look()
  isRotating = true
  await keys.rotate()
  look()

  t.equal(used.length, 2, 'the old key, then the new one')
  for (const { kid, key } of used) {
    const token = await new SignJWT({}).setProtectedHeader({ alg: 'RS256', kid }).sign(key)
    const verifier = keys.find(kid)
    if (!verifier) throw new Error(`${kid} is not known`)
    await jwtVerify(token, verifier)
  }
})

t.test('a rotation is stored as a whole or not at all', async (t) => {
  const embedded = await openEmbeddedStore(t.testdir())
  t.teardown(() => embedded.close())
  let left = Infinity
  const store: Store = {
    ...embedded,
    commit: (changes) => (left-- > 0 ? embedded.commit(changes) : Promise.reject(new Error('disk full'))),
  }
  const keys = await createSigningKeys({ store, clock: Date.now, keepMs: 60_000 })
  await keys.rotate()
  const before = keys.list()
  left = 0
  await t.rejects(keys.rotate({ dropOld: true }), { message: 'disk full' })
  t.same(keys.list(), before)
  t.equal(keys.current().kid, before[0]?.kid, 'the key before signs on')
  left = 1
  const made = await keys.rotate({ dropOld: true })
  t.same(keys.list(), [made])
  const again = await createSigningKeys({ store: embedded, clock: Date.now, keepMs: 60_000 })
  t.same(again.list(), [made])
})
