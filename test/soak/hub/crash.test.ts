import { testCrashes } from './crashes.ts'

testCrashes('embedded', 50)
