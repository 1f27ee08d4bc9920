import t from 'tap'
import { createPasswords, TooBusy } from '../../../../bridge-https/users/passwords.ts'

t.test('a password fits its own hash only', async (t) => {
  const passwords = createPasswords()
  const hash = await passwords.hash('größer als zehn')
  t.match(hash, /^scrypt\$15\$8\$3\$[\w-]{22}\$[\w-]{43}$/)
  t.not(await passwords.hash('größer als zehn'), hash, 'salted')
  t.equal(await passwords.verify('größer als zehn', hash), true)
  t.equal(await passwords.verify('größer als zehn'.normalize('NFD'), hash), true, 'typed on another system')
  t.equal(await passwords.verify('grösser als zehn', hash), false)
  t.equal(await passwords.verify('', hash), false)
  t.equal(await passwords.verify('x', undefined), false, 'nobody has no password')
  t.equal(await passwords.verify('x', 'damaged'), false)
})

t.test('one is worked on at a time, and too many are sent away at once', async (t) => {
  const passwords = createPasswords({ maxWaiting: 2 })
  const finished: number[] = []
  const tries = Array.from({ length: 5 }, (_, index) =>
    passwords.verify('x', undefined).then(
      () => finished.push(index),
      (error: unknown) => {
        t.ok(error instanceof TooBusy)
        finished.push(index)
      },
    ),
  )
  await Promise.all(tries)
  t.same(finished, [3, 4, 0, 1, 2])
  t.equal(await passwords.verify('x', undefined), false, 'there is room again')
})

t.test('somebody who does not exist costs as much time as somebody who does', async (t) => {
  const passwords = createPasswords()
  const hash = await passwords.hash('a long password')
  // The shortest of at least five rounds: a pause of the machine lengthens the others only. A busy machine needs more.
  const times = { known: Infinity, unknown: Infinity }
  const isAlike = () => times.known / times.unknown > 0.5 && times.known / times.unknown < 2
  for (let round = 0; round < 5 || (round < 20 && !isAlike()); round++) {
    for (const who of ['known', 'unknown'] as const) {
      const started = performance.now()
      await passwords.verify('wrong', who === 'known' ? hash : undefined)
      times[who] = Math.min(times[who], performance.now() - started)
    }
  }
  t.ok(isAlike(), `ratio ${times.known / times.unknown}`)
})
