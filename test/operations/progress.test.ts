import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { workWithProgress } from '../../operations/progress.ts'

const told = { progress: () => ({ done: 1 }), failed: (error: unknown) => String(error) }

t.test('the last line of a work has its result', async (t) => {
  const lines = workWithProgress(async () => 'done', told)
  t.strictSame(await allOf(lines), [{ result: 'done' }])
})

t.test('or why there is none', async (t) => {
  const lines = workWithProgress(() => Promise.reject(new Error('no')), told)
  t.strictSame(await allOf(lines), [{ error: 'Error: no' }])
})

t.test('until then lines say how far it is', async (t) => {
  let end = (_result: string) => {}
  const lines = workWithProgress(
    () =>
      new Promise<string>((resolve) => {
        end = resolve
      }),
    told,
  )
  t.strictSame(await lines.next(), { value: { progress: { done: 1 } }, done: false })
  end('done')
  t.strictSame(await allOf(lines), [{ result: 'done' }])
})

t.test('a work that nobody listens to any more is told to end, and waited for', async (t) => {
  let isOver = false
  const lines = workWithProgress(async (signal) => {
    await setTimeout(60_000, undefined, { signal }).catch(() => undefined)
    isOver = true
  }, told)
  const pending = lines.next()
  await lines.return?.()
  t.ok(isOver)
  t.strictSame(await pending, { value: { result: undefined }, done: false })
  t.strictSame(await lines.next(), { value: undefined, done: true })
})

async function allOf(lines: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const line of lines) all.push(line)
  return all
}
