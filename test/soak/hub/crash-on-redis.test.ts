import { testCrashes } from './crashes.ts'

// The same way of an event; fewer, because each start takes longer.
testCrashes('redis', 15)
