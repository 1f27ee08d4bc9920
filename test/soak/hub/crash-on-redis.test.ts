import { testCrashes } from './crashes.ts'

// The test of `crash.test.ts` on Redis. It has fewer kills, because each start takes longer.
testCrashes('redis', 15)
