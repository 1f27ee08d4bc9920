import type { Test } from 'tap'

/** Collects what the library throws in a task of its own, where it would end the process of a user. */
export function thrownApart(t: Test): unknown[] {
  const thrown: unknown[] = []
  const { queueMicrotask } = globalThis
  t.teardown(() => Object.assign(globalThis, { queueMicrotask }))
  globalThis.queueMicrotask = (task) =>
    queueMicrotask(() => {
      try {
        task()
      } catch (error) {
        thrown.push(error)
      }
    })
  return thrown
}
