import t from 'tap'
import { untilDone } from '../../store/until-done.ts'

/**
 * Most tests hand this signal in, so that the process stays alive. Without a signal, a pause of `untilDone` would not
 * keep the process alive.
 */
const { signal } = new AbortController()

function failing(times: number) {
  let attempts = 0
  return async (): Promise<number> => {
    attempts++
    if (attempts <= times) throw new Error(`attempt ${attempts}`)
    return attempts
  }
}

const unexpected = (error: unknown) => {
  throw error
}

t.test('attempts until one succeeds, and tells of each that failed', async (t) => {
  const failures: unknown[] = []
  const failed = (error: unknown) => failures.push(String(error))
  t.strictSame(await untilDone(failing(2), { failed, pauseMs: 1, signal }), { result: 3 })
  t.strictSame(failures, ['Error: attempt 1', 'Error: attempt 2'])
})

t.test('what succeeds at once is attempted once, wanted or not', async (t) => {
  const done = await untilDone(failing(0), { failed: unexpected, isWanted: () => false })
  t.strictSame(done, { result: 1 })
})

t.test('ends without a result when it is no longer wanted', async (t) => {
  let failures = 0
  const failed = () => failures++
  const isWanted = () => failures < 3
  t.equal(await untilDone(failing(9), { failed, isWanted, pauseMs: 1, signal }), undefined)
  t.equal(failures, 3)
})

t.test('a signal ends the pause', async (t) => {
  const stopping = new AbortController()
  const failed = () => setImmediate(() => stopping.abort())
  const pauseMs = 2 ** 31 - 1
  t.equal(await untilDone(failing(9), { failed, pauseMs, signal: stopping.signal }), undefined)
  t.equal(
    await untilDone(failing(9), { failed, pauseMs, signal: stopping.signal }),
    undefined,
    'or prevents it',
  )
})

t.test('after a failure elsewhere the pause comes first', async (t) => {
  const asked: string[] = []
  const attempt = async () => void asked.push('attempt')
  const isWanted = () => asked.push('wanted?') > 0
  await untilDone(attempt, { failed: unexpected, isWanted, pauseMs: 1, hasFailed: true, signal })
  t.strictSame(asked, ['wanted?', 'attempt'])
})
