import { testCrashes } from './crashes.ts'

// The same test on Redis. It has fewer kills, because each start takes longer.
testCrashes('redis', 15)
