import { answer } from './answer.ts'
import { startCounting, takeCounts } from './coverage.ts'

/*
 * Node loads this file before a program that knows nothing of the bench (`askable`). The bench can then ask the
 * process for its CPU time and memory, and how often each function has run.
 */
answer({ startCounting, takeCounts })
process.channel?.unref()
