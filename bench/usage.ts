import { answer } from './answer.ts'
import { startCounting, takeCounts } from './coverage.ts'

/* Loaded before a program that knows nothing of the bench. The program then answers how much it uses and what it runs. */
answer({ startCounting, takeCounts })
process.channel?.unref()
