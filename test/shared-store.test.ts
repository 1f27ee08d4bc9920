import t from 'tap'
import { createSharedSpace } from './shared-store.ts'
import { numberSuite } from './store/number-suite.ts'

/* What tests of several nodes share takes numbers as the drivers do. */
numberSuite(t, async (t) => {
  const space = createSharedSpace()
  return { store: space.openFollowed(t), reopen: async () => space.openFollowed(t) }
})
