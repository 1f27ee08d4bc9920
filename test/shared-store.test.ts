import t from 'tap'
import { createSharedSpace } from './shared-store.ts'
import { numberSuite } from './store/number-suite.ts'

/* The shared store of tests takes numbers like the real drivers. */
numberSuite(t, async (t) => {
  const space = createSharedSpace()
  return { store: space.openFollowed(t), reopen: async () => space.openFollowed(t) }
})
