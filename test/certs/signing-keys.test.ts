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
  // Other code that uses the keys runs between two steps of the rotation: here, the test reads the current key.
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
