import t from 'tap'

/* A test file with uncaught errors, which `test/uncaught.test.ts` runs. */

t.test('one that passes', async (t) => {
  t.pass('before')
})

t.test('around', async (t) => {
  await t.test('a rejection', async () => {
    void Promise.reject(new Error('rejected'))
    await new Promise(() => undefined)
  })
  await t.test('an error of a timer', async () => {
    setTimeout(() => {
      throw new Error('thrown')
    })
    await new Promise(() => undefined)
  })
  t.pass('after it')
})
